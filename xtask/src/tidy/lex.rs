//! A minimal lexer that separates Rust code from comments and strings.

/// The kind of a piece of Rust text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    /// A literal, with its quotes.
    Text,
}

/// The text with comments and string contents replaced by spaces; offsets and lines stay the same.
pub(super) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (kind, piece) in pieces(text) {
        match kind {
            Kind::Code => out.push_str(piece),
            Kind::Comment | Kind::Text => {
                let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
                out.extend(piece.bytes().map(blank));
            }
        }
    }
    out
}

/// Every string literal without its quotes, with its offset.
pub(super) fn strings(text: &str) -> Vec<(usize, &str)> {
    let mut offset = 0;
    let mut found = Vec::new();
    for (kind, piece) in pieces(text) {
        if kind == Kind::Text && !piece.starts_with('\'') {
            found.push((offset, piece.trim_start_matches(['b', 'r', 'c', '#']).trim_matches(['"', '#'])));
        }
        offset += piece.len();
    }
    found
}

/// Splits the text into pieces that add up to all of it.
fn pieces(text: &str) -> Vec<(Kind, &str)> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let Some((kind, length)) = special(text, at) else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        if start < at {
            pieces.push((Kind::Code, &text[start..at]));
        }
        pieces.push((kind, &text[at..at + length]));
        at += length;
        start = at;
    }
    if start < text.len() {
        pieces.push((Kind::Code, &text[start..]));
    }
    pieces
}

/// The comment or literal that begins at `at`, with its length.
fn special(text: &str, at: usize) -> Option<(Kind, usize)> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2)));
    }
    let after_word = text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    if !after_word {
        let raw = rest.trim_start_matches(['b', 'c']);
        if let Some(hashes) =
            raw.strip_prefix('r').map(|hashes| hashes.len() - hashes.trim_start_matches('#').len())
            && raw[1 + hashes..].starts_with('"')
        {
            let opened = rest.len() - raw.len() + 1 + hashes + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let end = rest[opened..].find(&close).map_or(rest.len(), |end| opened + end + close.len());
            return Some((Kind::Text, end));
        }
    }
    match rest.as_bytes()[0] {
        b'"' => Some((Kind::Text, quoted(rest, '"'))),
        // A lifetime has no closing quote after one character.
        b'\'' if rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'') => {
            Some((Kind::Text, quoted(rest, '\'')))
        }
        _ => None,
    }
}

/// The length of a literal that begins with `quote`, which may be escaped in it.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "let a = \"// no \\\" comment\"; // yes \"x\"\nlet b = 'c'; /* d */ e::<'f>(r#\"g\"h\"#)";
        let seen = code(text);
        assert_eq!(seen.len(), text.len());
        assert_eq!(seen.split_whitespace().collect::<String>(), "leta=;letb=;e::<'f>()");
        assert_eq!(seen.matches('\n').count(), 1);
        let found: Vec<&str> = strings(text).into_iter().map(|(_, string)| string).collect();
        assert_eq!(found, ["// no \\\" comment", "g\"h"]);
    }

    #[test]
    fn the_offset_is_that_of_the_literal() {
        let text = "x(\"é\", b\"two\")";
        let (offset, string) = strings(text)[1];
        assert_eq!(string, "two");
        assert!(text[offset..].starts_with("\"two\""));
    }
}
