//! Validation and normalisation of a provider's data about a person. Pure.

use super::provider::{Person, ProviderError};
use crate::accounts::rules::{MAX_NAME_CHARS, phone};

/// Maximum length of an identifier: a CI has 88 characters, a DI 64.
const MAX_NUMBER_LEN: usize = 200;

/// Maximum length of the gender.
const MAX_WORD_LEN: usize = 20;

/// A provider's data, not yet validated.
pub(crate) struct ProviderData {
    pub(crate) ci: Option<String>,
    pub(crate) di: Option<String>,
    pub(crate) name: String,
    pub(crate) birth_date: Option<String>,
    pub(crate) phone: Option<String>,
    pub(crate) gender: Option<String>,
    pub(crate) foreigner: Option<bool>,
}

/// Validates a provider's data. A CI is required, because it identifies the person; other invalid
/// fields are dropped.
pub(crate) fn person(data: ProviderData) -> Result<Person, ProviderError> {
    let ci = data.ci.as_deref().and_then(number).ok_or(ProviderError::Unusable("names no CI"))?;
    let name: String = data.name.trim().chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect();
    if name.is_empty() {
        return Err(ProviderError::Unusable("has no name"));
    }
    Ok(Person {
        ci,
        di: data.di.as_deref().and_then(number),
        name,
        birth_date: data.birth_date.and_then(|day| day.trim().parse().ok()),
        phone: data.phone.and_then(|text| phone(&text).ok().flatten()),
        gender: data.gender.filter(|word| word.len() <= MAX_WORD_LEN),
        foreigner: data.foreigner,
    })
}

/// Validates a CI or DI: printable and of limited length.
fn number(text: &str) -> Option<String> {
    let text = text.trim();
    let good = (1..=MAX_NUMBER_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    good.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(ci: Option<&str>) -> ProviderData {
        ProviderData {
            ci: ci.map(str::to_owned),
            di: Some(String::new()),
            name: " 김민지\n".to_owned(),
            birth_date: Some("2001-02-30".to_owned()),
            phone: Some("01012345678".to_owned()),
            gender: Some("x".repeat(21)),
            foreigner: None,
        }
    }

    #[test]
    fn a_person_needs_ci_and_name_and_invalid_fields_are_dropped() {
        let person = person(data(Some(" ci+/= "))).unwrap();
        assert_eq!((person.ci.as_str(), person.name.as_str()), ("ci+/=", "김민지"));
        assert_eq!((person.di, person.birth_date, person.gender), (None, None, None));
        assert_eq!(person.phone.as_deref(), Some("+821012345678"));
    }

    #[test]
    fn a_person_without_a_ci_is_refused() {
        let long = "x".repeat(MAX_NUMBER_LEN + 1);
        for ci in [None, Some(""), Some("  "), Some("c i"), Some("번호"), Some(long.as_str())] {
            assert!(matches!(person(data(ci)), Err(ProviderError::Unusable(_))), "{ci:?}");
        }
        let nameless = ProviderData { name: " \u{7} ".to_owned(), ..data(Some("ci")) };
        assert!(matches!(person(nameless), Err(ProviderError::Unusable(_))));
    }
}
