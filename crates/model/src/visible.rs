//! Text for a terminal without characters that control it.
//!
//! Messages quote servers, endpoints and files, whose text may move the cursor, change the title of the window or
//! reverse the order of letters. Every text passes this filter on its way to the terminal.

use std::borrow::Cow;

/// The text with each control character as `\u` and four hexadecimal digits, except line feeds and tabs. Marks that
/// change the direction of text count as control characters. The result stays valid JSON if the text is.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(controls) { filtered(text, |_| 0) } else { text.into() }
}

/// Like [`visible`], but keeps bold and coloured text, which wirelab's own reports have.
#[must_use]
pub fn visible_with_colours(text: &str) -> Cow<'_, str> {
    if text.chars().any(controls) { filtered(text, style) } else { text.into() }
}

/// Whether a character controls the terminal.
fn controls(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => letter.is_control(),
    }
}

/// Replaces control characters, except where `keeps` returns the length of a sequence that stays.
fn filtered(text: &str, keeps: impl Fn(&str) -> usize) -> Cow<'_, str> {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let kept = keeps(rest);
        if kept > 0 {
            shown.push_str(&rest[..kept]);
            rest = &rest[kept..];
            continue;
        }
        if controls(letter) {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
        rest = &rest[letter.len_utf8()..];
    }
    shown.into()
}

/// The length of a sequence at the start of the text that sets bold or a colour of the text; otherwise 0.
fn style(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[").and_then(|rest| Some(&rest[..rest.find('m')?])) else { return 0 };
    let is_style = |code: &str| matches!(code, "0" | "1" | "22" | "39") || matches!(code.parse(), Ok(31..=36_u8));
    let is_colour = codes.strip_prefix("38;5;").is_some_and(|number| number.parse::<u8>().is_ok());
    if is_style(codes) || is_colour { "\u{1b}[".len() + codes.len() + "m".len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_text_stays() {
        assert_eq!(visible("−5 %\u{a0}µs\n\tü 漢"), "−5 %\u{a0}µs\n\tü 漢");
        assert_eq!(visible("a\u{1b}]0;title\u{7}b\r"), r"a\u001b]0;title\u0007b\u000d");
        assert_eq!(visible("\u{9b}2J \u{202e}abc\u{2066}"), r"\u009b2J \u202eabc\u2066");
    }

    #[test]
    fn only_bold_and_colours_stay_in_coloured_text() {
        for kept in ["\u{1b}[1mx\u{1b}[0m", "\u{1b}[33m!\u{1b}[0m", "\u{1b}[38;5;10mok\u{1b}[39m"] {
            assert_eq!(visible_with_colours(kept), kept);
            assert!(!visible(kept).contains('\u{1b}'));
        }
        for hostile in ["\u{1b}[8m", "\u{1b}[2J", "\u{1b}[1;1H m", "\u{1b}]8;;http://x\u{7}m", "\u{1b}[38;5;999m"] {
            assert!(!visible_with_colours(hostile).contains('\u{1b}'), "{hostile:?}");
        }
    }
}
