//! Suggestions for misspelt names.

/// The candidate most similar to `wanted`, if a candidate is similar enough.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = wanted.chars().count().div_ceil(3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns `; did you mean "x"?`, or an empty text.
pub(crate) fn suggestion<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> String {
    nearest(wanted, candidates).map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
