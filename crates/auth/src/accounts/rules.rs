//! Validation and normalisation of account fields. Pure.

use urr_contracts::auth::{Agreement, Error, Register, TermsKind};

/// RFC 5321: a path has at most 254 characters, its local part at most 64.
const MAX_EMAIL_LEN: usize = 254;
const MAX_LOCAL_LEN: usize = 64;

/// Maximum length of a name, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 100;

/// Digits of an international number with country code: E.164 allows 15, and no country has fewer
/// than 8.
const E164_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Digits of a Korean number after its leading zero: 2-123-4567 to 10-1234-5678.
const KOREAN_DIGITS: std::ops::RangeInclusive<usize> = 8..=10;

/// Consent to these is required; consent to marketing is optional.
const REQUIRED_TERMS: [TermsKind; 2] = [TermsKind::Service, TermsKind::Privacy];

/// A registration with normalised fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewAccount {
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) phone: Option<String>,
    /// The decision about each document.
    pub(crate) decisions: Vec<(TermsKind, bool)>,
}

impl NewAccount {
    pub(crate) fn marketing(&self) -> bool {
        self.decisions.contains(&(TermsKind::Marketing, true))
    }
}

/// Validates a registration, except for its password.
pub(crate) fn check(request: &Register, terms_version: &str) -> Result<NewAccount, Error> {
    Ok(NewAccount {
        email: email(&request.email)?,
        name: name(&request.name)?,
        phone: request.phone.as_deref().map(phone).transpose()?.flatten(),
        decisions: decisions(&request.agreements, terms_version)?,
    })
}

/// Normalises an e-mail address: trimmed, lower case, domain in ASCII.
///
/// In theory the local part is case-sensitive, in practice it never is. Two accounts for one
/// mailbox would be worse.
pub(crate) fn email(text: &str) -> Result<String, Error> {
    let wrong = |reason: &str| invalid("email", reason);
    let text = text.trim();
    let (local, domain) = text
        .rsplit_once('@')
        .ok_or_else(|| wrong("Please enter an e-mail address, such as name@example.com"))?;
    if !is_local(local) {
        return Err(wrong("The part of the e-mail address before the @ is not valid"));
    }
    let domain = idna::domain_to_ascii_strict(domain)
        .ok()
        .filter(|domain| is_domain(domain))
        .ok_or_else(|| wrong("The part of the e-mail address after the @ is not valid"))?;
    let email = format!("{}@{domain}", local.to_ascii_lowercase());
    if email.len() > MAX_EMAIL_LEN {
        return Err(wrong("The e-mail address is too long"));
    }
    Ok(email)
}

/// The characters of RFC 5322 that need no quotes.
fn is_local(local: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-.".contains(&byte);
    (1..=MAX_LOCAL_LEN).contains(&local.len())
        && local.bytes().all(good)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
}

/// Whether this is a public host name: it has a dot, and its last label is not numeric as in an IP
/// address.
fn is_domain(domain: &str) -> bool {
    let last = domain.rsplit('.').next().unwrap_or_default();
    domain.contains('.') && !last.is_empty() && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Validates and trims a name.
pub(crate) fn name(text: &str) -> Result<String, Error> {
    let name = text.trim();
    let reason = if name.is_empty() {
        "Please enter your name"
    } else if name.chars().count() > MAX_NAME_CHARS {
        "A name has at most 100 characters"
    } else if name.chars().any(|letter| letter.is_control() || is_unseen(letter)) {
        "A name must not contain control characters"
    } else {
        return Ok(name.to_owned());
    };
    Err(invalid("name", reason))
}

/// Whether a character is invisible but changes how others are displayed: bidirectional controls
/// and line separators. U+202E in a name would reverse the text after it on a page or in a mail.
fn is_unseen(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(letter, '\u{e0000}'..='\u{e007f}')
}

/// Normalises a phone number to E.164; `None` if the text is empty. Without a country code it is
/// Korean.
pub(crate) fn phone(text: &str) -> Result<Option<String>, Error> {
    let bare: String =
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '.' | '(' | ')')).collect();
    if bare.is_empty() {
        return Ok(None);
    }
    let wrong = || invalid("phone", "Please enter a phone number, such as 010-1234-5678 or +82 10 1234 5678");
    let international = bare.strip_prefix('+').or_else(|| bare.strip_prefix("00"));
    let number = if let Some(number) = international {
        // Some users write +82 (0)10; the zero is for domestic calls only.
        number.strip_prefix("820").map_or_else(|| number.to_owned(), |korean| format!("82{korean}"))
    } else {
        let korean = bare.strip_prefix('0').filter(|number| KOREAN_DIGITS.contains(&number.len()));
        format!("82{}", korean.ok_or_else(wrong)?)
    };
    let good = number.bytes().all(|byte| byte.is_ascii_digit())
        && !number.starts_with('0')
        && E164_DIGITS.contains(&number.len());
    if good { Ok(Some(format!("+{number}"))) } else { Err(wrong()) }
}

/// Returns the last decision about each document, or `TermsRequired` unless the current version of
/// all required ones was agreed to.
pub(crate) fn decisions(agreements: &[Agreement], version: &str) -> Result<Vec<(TermsKind, bool)>, Error> {
    let kinds = [TermsKind::Service, TermsKind::Privacy, TermsKind::Marketing];
    let current = |agreement: &&Agreement| agreement.version.as_deref().is_none_or(|shown| shown == version);
    let decided: Vec<(TermsKind, bool)> = kinds
        .into_iter()
        .filter_map(|kind| {
            let last = agreements.iter().rfind(|agreement| agreement.kind == kind);
            last.filter(current).map(|agreement| (kind, agreement.agreed))
        })
        .collect();
    let missing: Vec<TermsKind> =
        REQUIRED_TERMS.into_iter().filter(|kind| !decided.contains(&(*kind, true))).collect();
    if missing.is_empty() {
        return Ok(decided);
    }
    Err(Error::TermsRequired { missing, version: version.to_owned() })
}

/// An `Invalid` error for one field.
pub(crate) fn invalid(field: &str, reason: &str) -> Error {
    Error::Invalid { field: field.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
