//! Computes the width of text, and wraps or cuts text. Figures are laid out without a browser, so
//! the widths are those of DejaVu Sans, which is as wide as any font that a browser uses for
//! sans-serif.

/// The approximate width of a text.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let letters: f64 = text.chars().map(letter).sum();
    letters * size * if bold { 1.12 } else { 1.0 }
}

fn letter(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '|' => 0.3,
        ' ' | '.' | ',' | ':' | ';' | 'I' | '!' => 0.34,
        'f' | 't' | 'r' | '-' | '(' | ')' | '/' | '[' | ']' | '"' => 0.42,
        'm' | 'W' | 'M' | '@' | '%' | '→' | '…' | '—' => 1.0,
        '+' | '=' | '<' | '>' | '±' | '×' | '−' | '≤' | '≥' | '~' | 'w' => 0.84,
        'A'..='Z' => 0.76,
        // These are East Asian and other wide scripts.
        wide if wide as u32 >= 0x1100 => 1.05,
        _ => 0.64,
    }
}

/// Returns the text, or the start of the text that fits with `…` at the end.
pub(super) fn cut(text: &str, room: f64, size: f64, bold: bool) -> String {
    if width(text, size, bold) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        let longer = format!("{kept}{character}");
        if width(&format!("{longer}…"), size, bold) > room {
            break;
        }
        kept = longer;
    }
    format!("{}…", kept.trim_end())
}

/// Splits a text at spaces into at most `most` lines that fit. The last line may be cut.
pub(super) fn wrap(text: &str, room: f64, size: f64, bold: bool, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let fits = |line: &String| width(&format!("{line} {word}"), size, bold) <= room;
        match lines.last_mut() {
            Some(line) if fits(line) => *line = format!("{line} {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| cut(line, room, size, bold)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_and_shortened_to_the_given_width() {
        assert_eq!(cut("weir", 100.0, 11.0, false), "weir");
        let cut_down = cut("a name that is much too long", 60.0, 11.0, false);
        assert!(cut_down.ends_with('…') && width(&cut_down, 11.0, false) <= 60.0, "{cut_down}");
        assert_eq!(wrap("one two three", 60.0, 11.0, false, 3), ["one two", "three"]);
        let lines = wrap("one two three four five six", 50.0, 11.0, false, 2);
        assert!(lines.len() == 2 && lines[1].ends_with('…'), "{lines:?}");
        assert!(wrap("", 50.0, 11.0, false, 2).is_empty());
    }
}
