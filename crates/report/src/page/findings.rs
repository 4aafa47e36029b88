//! Lists findings by kind. Each kind has one line with the number of its findings, and the folded
//! texts below.

use crate::groups::by_key;
use crate::results::Finding;
use maud::{Markup, html};

/// The maximum number of listed findings of one kind.
const LISTED: usize = 200;

pub(super) fn html(all: &[Finding]) -> Markup {
    let kinds = by_key(all.iter().map(|finding| (finding.code.as_str(), finding.text.as_str())));
    html! {
        @if !kinds.is_empty() {
            h2 { "Findings" }
            @for (code, texts) in &kinds {
                details {
                    summary {
                        b { (code) }
                        @if texts.len() > 1 { " × " (texts.len()) }
                        ": " (in_common(texts))
                    }
                    @if texts.len() > 1 {
                        ul { @for text in texts.iter().take(LISTED) { li { (text) } } }
                        @if texts.len() > LISTED {
                            p { (texts.len() - LISTED) " more are in " code { "result.json" } "." }
                        }
                    } @else {
                        p { (texts.first().copied().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// The words that all texts share, with `…` for the words that differ.
fn in_common(texts: &[&str]) -> String {
    let split =
        |text: &&str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let Some((first, others)) = texts.split_first() else { return String::new() };
    let mut common: Vec<Option<String>> = split(first).into_iter().map(Some).collect();
    for other in others {
        let words = split(other);
        if words.len() == common.len() {
            for (known, word) in common.iter_mut().zip(&words) {
                if known.as_ref() != Some(word) {
                    *known = None;
                }
            }
            continue;
        }
        // Texts of different lengths share the words at the start and at the end.
        let alike = |(known, word): &(&Option<String>, &String)| known.as_ref() == Some(word);
        let start = common.iter().zip(&words).take_while(alike).count();
        let rest = common.len().min(words.len()) - start;
        let end = common.iter().rev().zip(words.iter().rev()).take(rest).take_while(alike).count();
        let tail = common.split_off(common.len() - end);
        common.truncate(start);
        common.push(None);
        common.extend(tail);
    }
    common.dedup_by(|a, b| a.is_none() && b.is_none());
    let text: Vec<String> =
        common.into_iter().map(|word| word.unwrap_or_else(|| "…".to_owned())).collect();
    let text = text.join(" ");
    if text == "…" { format!("such as: {first}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::in_common;

    #[test]
    fn the_common_words_of_finding_texts_are_extracted() {
        assert_eq!(in_common(&["a b c"]), "a b c");
        assert_eq!(in_common(&["a 1 b 2 c", "a 3 b 4 c", "a 1 b 5 c"]), "a … b … c");
        assert_eq!(
            in_common(&["rate=1 late by 3 ms", "rate=2 tcp=ND late by 3 ms"]),
            "… late by 3 ms"
        );
        assert_eq!(in_common(&["a b", "c d"]), "such as: a b");
        assert_eq!(in_common(&["a a", "a a a"]), "a a …");
        assert_eq!(in_common(&[]), "");
    }
}
