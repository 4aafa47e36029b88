//! Groups values by a key, and removes repeated values.

/// Groups the values of equal keys. The groups are in the order of their first values.
pub(crate) fn by_key<K: PartialEq, V>(
    values: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in values {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The different values, in the order of their first occurrence.
pub(crate) fn unique<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
