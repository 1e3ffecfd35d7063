//! What an installation may choose.

use std::time::Duration;

use urr_passes::access;

use crate::passwords::Hashing;

const DAY: Duration = Duration::from_hours(24);

/// What an installation may choose. The defaults are for the public.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the site is, for links in mails: `https://urr.example`, without a slash at the end.
    pub site_url: String,
    /// Whether cookies go over HTTPS alone. Off only on localhost.
    pub secure_cookies: bool,
    /// The version of the terms that is shown now.
    pub terms_version: String,
    /// How long an access token is good. Whoever checks them must forget a revocation no earlier.
    pub access_lifetime: Duration,
    /// How long after it was closed an account's personal data is erased.
    pub erase_after: Duration,
    /// How long without a sign-in an account falls dormant.
    pub dormant_after: Duration,
    /// How long the sign-in history is kept.
    pub history_kept: Duration,
    /// Whether administrators are administrators only with a second factor.
    pub admin_needs_second_factor: bool,
    /// How passwords are hashed.
    pub hashing: Hashing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            site_url: "http://localhost:3001".to_owned(),
            secure_cookies: true,
            terms_version: "1.0".to_owned(),
            access_lifetime: access::LIFETIME,
            erase_after: DAY * 30,
            dormant_after: DAY * 365,
            history_kept: DAY * 180,
            admin_needs_second_factor: false,
            hashing: Hashing::default(),
        }
    }
}
