//! Texts of mails. Each domain has its own templates; greeting and signature are shared.

use urr_kernel::Language;

/// One mail in both languages. `{name}` in a subject or body is a placeholder.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Korean.
    pub ko: Words,
    /// English.
    pub en: Words,
}

/// Subject and body in one language. The body has neither greeting nor signature.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// One line.
    pub subject: &'static str,
    /// Plain text.
    pub body: &'static str,
}

/// A rendered mail. It has no `Debug`: the text may contain a link that signs its reader in.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// One line.
    pub subject: String,
    /// Plain text with greeting and signature.
    pub text: String,
}

impl Template {
    /// Fills in the placeholders. Pass the recipient's name only if the recipient chose it:
    /// otherwise a third party could send text to the address.
    pub fn render(&self, language: Language, name: Option<&str>, values: &[(&str, &str)]) -> Text {
        let words = self.words(language);
        let (greeting, signature) = match language {
            Language::Ko => {
                (name.map_or("안녕하세요.".into(), |name| format!("{name}님, 안녕하세요.")), "우르르 드림")
            }
            Language::En => (name.map_or("Hello,".into(), |name| format!("Hello {name},")), "URR"),
        };
        // A line break in a subject would start another header.
        let subject = fill(words.subject, values).replace(|c: char| c.is_control(), " ");
        Text { subject, text: format!("{greeting}\n\n{}\n\n{signature}\n", fill(words.body, values)) }
    }

    /// The placeholders of one language, sorted, for tests that compare them with the values
    /// passed.
    pub fn placeholders(&self, language: Language) -> Vec<&'static str> {
        let Words { subject, body } = self.words(language);
        let mut names: Vec<_> =
            [subject, body].into_iter().flat_map(parts).filter_map(|(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn words(&self, language: Language) -> Words {
        match language {
            Language::Ko => self.ko,
            Language::En => self.en,
        }
    }
}

/// Replaces placeholders in one pass, so that placeholders in values are not replaced.
fn fill(text: &'static str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    for (literal, name) in parts(text) {
        filled.push_str(literal);
        let Some(name) = name else { continue };
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => filled.push_str(value),
            None => filled.extend(["{", name, "}"]),
        }
    }
    filled
}

/// Splits the text into pairs of literal text and the placeholder that follows it.
fn parts(text: &'static str) -> Vec<(&'static str, Option<&'static str>)> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((literal, (name, behind))) =
        rest.split_once('{').and_then(|(literal, opened)| Some((literal, opened.split_once('}')?)))
    {
        parts.push((literal, Some(name)));
        rest = behind;
    }
    parts.push((rest, None));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: Template = Template {
        ko: Words { subject: "{event} 예매 완료", body: "좌석: {seats}" },
        en: Words { subject: "Booked: {event}", body: "Seats: {seats}. Event: {event}." },
    };

    #[test]
    fn a_mail_is_rendered_in_the_recipients_language() {
        let values = [("event", "IU"), ("seats", "A1, A2")];
        let korean = TEMPLATE.render(Language::Ko, Some("민지"), &values);
        assert_eq!(korean.subject, "IU 예매 완료");
        assert_eq!(korean.text, "민지님, 안녕하세요.\n\n좌석: A1, A2\n\n우르르 드림\n");
        let english = TEMPLATE.render(Language::En, None, &values);
        assert_eq!(english.text, "Hello,\n\nSeats: A1, A2. Event: IU.\n\nURR\n");
    }

    #[test]
    fn a_value_adds_neither_a_header_nor_a_placeholder() {
        let values = [("event", "IU\r\nBcc: all@example.com {seats}"), ("seats", "A1")];
        let text = TEMPLATE.render(Language::En, None, &values);
        assert_eq!(text.subject, "Booked: IU  Bcc: all@example.com {seats}");
        assert_eq!(text.text.matches("A1").count(), 1);
    }

    #[test]
    fn placeholders_are_listed_once_and_sorted() {
        assert_eq!(TEMPLATE.placeholders(Language::En), ["event", "seats"]);
        assert_eq!(TEMPLATE.placeholders(Language::Ko), ["event", "seats"]);
        assert_eq!(parts("a { b"), [("a { b", None)]);
    }
}
