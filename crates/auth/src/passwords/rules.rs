//! Password rules. Pure.
//!
//! Length matters, and not being a common password. Rules about digits and capitals make passwords
//! worse, so there are none.

use urr_contracts::auth::Error;

use super::common::is_common;

/// Minimum length: that of the predecessor, and still allowed by current guidance.
pub(crate) const MIN_CHARS: usize = 8;

/// Maximum length: enough for a passphrase, and limits the hashing work.
pub(crate) const MAX_CHARS: usize = 128;

/// Validates a new password for a user with this address and name.
pub(crate) fn check(password: &str, email: &str, name: &str) -> Result<(), Error> {
    let chars = password.chars().count();
    let reason = if chars < MIN_CHARS {
        "Password must be at least 8 characters"
    } else if chars > MAX_CHARS {
        "Password must be at most 128 characters"
    } else if is_about(password, email, name) {
        "Password must not be your e-mail address or your name"
    } else if is_common(password) || password.chars().all(char::is_whitespace) {
        "This password is among the first that others would guess; please choose another one"
    } else if password.chars().any(char::is_control) {
        "Password must not contain control characters"
    } else {
        return Ok(());
    };
    Err(Error::Invalid { field: "password".to_owned(), reason: reason.to_owned() })
}

/// Whether a password can be right at all. Otherwise hashing it is unnecessary.
pub(crate) fn is_possible(password: &str) -> bool {
    (1..=MAX_CHARS).contains(&password.chars().count())
}

fn is_about(password: &str, email: &str, name: &str) -> bool {
    let password = password.to_lowercase();
    let email = email.to_lowercase();
    let local = email.split('@').next().unwrap_or_default();
    [email.as_str(), local, name.to_lowercase().as_str()].contains(&password.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(password: &str) -> Option<String> {
        match check(password, "minji.kim@example.com", "Minji Kim of Seoul") {
            Ok(()) => None,
            Err(Error::Invalid { field, reason }) => {
                assert_eq!(field, "password");
                Some(reason)
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(refused("short12").as_deref(), Some("Password must be at least 8 characters"));
        assert_eq!(refused("우르르몰려온다").as_deref(), Some("Password must be at least 8 characters"));
        assert_eq!(refused("우르르 몰려온다"), None);
        assert_eq!(refused(&"가".repeat(128)), None);
        assert_eq!(refused(&"가".repeat(129)).as_deref(), Some("Password must be at most 128 characters"));
    }

    #[test]
    fn there_are_no_character_class_rules() {
        for good in ["correct horse battery staple", "ununhexium", "93847561203", "        a"] {
            assert_eq!(refused(good), None, "{good}");
        }
    }

    #[test]
    fn control_characters_are_refused() {
        for bad in [
            "\0\0\0\0\0\0\0\0",
            "correct\0horse",
            "correct\nhorse",
            "correct\u{7f}horse",
            "correct\u{85}horse",
        ] {
            assert_eq!(
                refused(bad).as_deref(),
                Some("Password must not contain control characters"),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn common_passwords_are_refused_with_a_reason() {
        for guess in
            ["PASSWORD1", "        ", "\t\t\t\t\t\t\t\t", "\u{3000}\u{3000}\u{3000}\u{3000} \u{a0} \u{3000}"]
        {
            assert!(refused(guess).unwrap().contains("guess"), "{guess:?}");
        }
        for about in ["minji.kim@example.com", "Minji.Kim@Example.com", "MINJI.KIM", "minji kim of seoul"] {
            assert!(refused(about).unwrap().contains("your name"), "{about}");
        }
    }
}
