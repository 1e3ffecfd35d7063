//! Normalisation and rejection of each field.

use proptest::prelude::*;

use super::*;

fn agreement(kind: TermsKind, agreed: bool, version: Option<&str>) -> Agreement {
    Agreement { kind, version: version.map(str::to_owned), agreed }
}

#[test]
fn addresses_are_normalised() {
    for (text, expected) in [
        ("minji@example.com", "minji@example.com"),
        ("  Minji.Kim+urr@EXAMPLE.Com\n", "minji.kim+urr@example.com"),
        ("minji@우르르.한국", "minji@xn--2w2ba672h.xn--3e0b707e"),
        ("minji@ｅｘａｍｐｌｅ.com", "minji@example.com"),
        ("o'brien@mail.example.co.kr", "o'brien@mail.example.co.kr"),
    ] {
        assert_eq!(email(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn invalid_addresses_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "such as name@example.com"),
        ("minji", "such as name@example.com"),
        ("@example.com", "before the @"),
        ("mi nji@example.com", "before the @"),
        ("민지@example.com", "before the @"),
        ("a@b@example.com", "before the @"),
        (".minji@example.com", "before the @"),
        ("min..ji@example.com", "before the @"),
        ("minji\r\nbcc:x@example.com", "before the @"),
        ("minji@", "after the @"),
        ("minji@localhost", "after the @"),
        ("minji@127.0.0.1", "after the @"),
        ("minji@exam ple.com", "after the @"),
        ("minji@exam_ple.com", "after the @"),
        ("minji@-example.com", "after the @"),
        ("minji@example..com", "after the @"),
        (&format!("{}@example.com", "a".repeat(65)), "before the @"),
        (&format!("a@{}.com", "a".repeat(64)), "after the @"),
        (&format!("{}@{}", "a".repeat(60), "abcdefghij.".repeat(18) + "com"), "too long"),
    ] {
        let Err(Error::Invalid { field, reason: told }) = email(text) else { panic!("{text} was accepted") };
        assert_eq!(field, "email");
        assert!(told.contains(reason), "{text}: {told}");
    }
}

#[test]
fn phone_numbers_are_normalised() {
    for (text, expected) in [
        ("010-1234-5678", "+821012345678"),
        ("(02) 123 4567", "+8221234567"),
        ("+82 10-1234-5678", "+821012345678"),
        ("+82 (0)10.1234.5678", "+821012345678"),
        ("0082 10 1234 5678", "+821012345678"),
        ("+1 (415) 555-0100", "+14155550100"),
    ] {
        assert_eq!(phone(text), Ok(Some(expected.to_owned())), "{text}");
    }
    assert_eq!(phone(" - "), Ok(None));
    for bad in [
        "1234",
        "1012345678",
        "0",
        "010-1234-567890",
        "+0123456789",
        "010-abcd-5678",
        "+123456",
        "+1234567890123456",
        "++8210",
    ] {
        assert!(phone(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_name_is_trimmed_and_bounded() {
    assert_eq!(name(" 김민지 ").as_deref(), Ok("김민지"));
    assert_eq!(name(&"가".repeat(100)).map(|name| name.chars().count()), Ok(100));
    for bad in ["", "   ", &"가".repeat(101), "Min\u{0}ji", "Min\nji"] {
        assert!(name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn invisible_control_characters_in_names_are_refused() {
    for good in ["김민지", "Zoë O'Connor-Núñez", "محمد", "क्\u{200d}ष", "👩\u{200d}🎤"] {
        assert_eq!(name(good).as_deref(), Ok(good));
    }
    for bad in ["Minji\u{202e}", "a\u{2066}b", "a\u{200b}b", "a\u{2028}b", "\u{feff}a", "a\nb", "a\u{e0041}b"]
    {
        assert!(name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn current_service_and_privacy_terms_are_required_marketing_is_optional() {
    use TermsKind::{Marketing, Privacy, Service};
    let yes = |kind| agreement(kind, true, None);
    assert_eq!(decisions(&[yes(Service), yes(Privacy)], "1.0").unwrap(), [(Service, true), (Privacy, true)]);
    let with_marketing = [yes(Marketing), yes(Privacy), agreement(Service, true, Some("1.0"))];
    assert!(decisions(&with_marketing, "1.0").unwrap().contains(&(Marketing, true)));
    for (agreements, missing) in [
        (vec![], vec![Service, Privacy]),
        (vec![yes(Service)], vec![Privacy]),
        (vec![yes(Service), agreement(Privacy, false, None)], vec![Privacy]),
        (vec![yes(Service), yes(Privacy), agreement(Privacy, false, None)], vec![Privacy]),
        (vec![agreement(Service, true, Some("0.9")), yes(Privacy)], vec![Service]),
    ] {
        let refused = Error::TermsRequired { missing, version: "1.0".to_owned() };
        assert_eq!(decisions(&agreements, "1.0"), Err(refused));
    }
}

proptest! {
    #[test]
    fn normalisation_of_addresses_is_idempotent(local in "[A-Za-z0-9.+_-]{1,20}", domain in "[A-Za-z0-9가-힣.-]{1,20}") {
        if let Ok(once) = email(&format!(" {local}@{domain} ")) {
            prop_assert_eq!(email(&once), Ok(once.clone()));
            prop_assert!(once.is_ascii() && once == once.to_lowercase());
        }
    }

    #[test]
    fn arbitrary_input_never_panics(text in any::<String>()) {
        let _ = (email(&text), name(&text));
        if let Ok(Some(number)) = phone(&text) {
            prop_assert_eq!(phone(&number), Ok(Some(number.clone())));
        }
    }

    #[test]
    fn the_spelling_of_a_korean_number_does_not_matter(number in "01[0-9]{8,9}", at in 3_usize..8) {
        let (head, tail) = number.split_at(at);
        prop_assert_eq!(phone(&number), phone(&format!("{head}-{tail}")));
        prop_assert_eq!(phone(&number), phone(&format!("+82 {}", &number[1..])));
    }
}
