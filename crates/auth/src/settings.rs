//! Settings of accounts.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use urr_contracts::auth::Sensitive;
use urr_kernel::Clock;
use urr_passes::access;
use urr_settings::{Days, HttpUrl, Kind, List, Problems, REDACTED, Secret, choice, settings};

use crate::{
    BadKeys, BadPortOne, IdentityProvider, IndexKey, Pii, PiiKeys, PortOne, PortOneConfig, Sandbox,
    SocialConfig,
    passwords::Hashing,
    social::settings::{Google, Kakao, Naver},
};

choice! {
    /// The identity provider.
    pub enum IdentityKind {
        /// Identities are not verified.
        Off = "off",
        /// Made-up identities.
        Sandbox = "sandbox",
        /// PortOne.
        Portone = "portone",
    }
}

choice! {
    /// Whether administrators need a second factor.
    pub enum SecondFactor {
        /// Optional.
        Off = "off",
        /// Required for admin rights.
        Required = "required",
    }
}

settings! {
    /// `[auth]`.
    pub struct Settings in "auth"
        "Accounts: cookies, personal data. Only for processes with the role `auth`."
    {
        /// Whether cookies have the attribute `Secure`, so that browsers send them over HTTPS only.
        /// By default `false` for the `local` profile on a loopback `listen` without an `https`
        /// `public_url`, and `true` elsewhere.
        pub cookie_secure: Option<bool> = "",
        /// Key of the hash by which accounts are looked up by address. It must not change while
        /// there are accounts.
        pub index_key: Option<Secret<32>> = "",
        /// Keys that encrypt addresses, names and phone numbers in the database. The first key
        /// encrypts; the others decrypt existing data. Without keys the data is stored in plain
        /// text.
        pub pii_keys: List<PiiKey> = "",
        /// Accept personal data that was written before there were keys, and encrypt it in the
        /// background. Turn it off when that is done: without it unencrypted data is refused.
        pub pii_seal_plain: bool = "false",
        /// `required`: an administrator without a second factor has the rights of a user until it
        /// is turned on. By default `off` for the `local` profile and `required` for `production`.
        pub admin_second_factor: Option<SecondFactor> = "",
        /// Provider of identity verification (one account per person): `portone` needs the three
        /// settings below; `sandbox` derives made-up identities from name and phone number; `off`
        /// verifies nothing. By default `sandbox` for the `local` profile and `off` for
        /// `production`.
        pub identity: Option<IdentityKind> = "",
        /// Allows `auth.identity = sandbox` in the `production` profile, where made-up identities
        /// would count as real ones.
        pub identity_allow_sandbox: bool = "false",
        /// PortOne's V2 API secret.
        pub portone_secret: Option<Secret<1>> = "",
        /// PortOne's id of this store, such as `store-…`.
        pub portone_store_id: Option<String> = "",
        /// The channel for identity verification, such as `channel-key-…`. A verification through
        /// any other channel is refused.
        pub portone_channel_key: Option<String> = "",
        /// URL of PortOne's API.
        pub portone_url: HttpUrl = "https://api.portone.io",
        /// The current version of the terms of service.
        pub terms_version: String = "1.0",
        /// Days after which the personal data of a closed account is erased.
        pub erase_after("erase_after_days"): Days<1, 3_650> = "30",
        /// Days without a sign-in after which an account becomes dormant.
        pub dormant_after("dormant_after_days"): Days<1, 3_650> = "365",
        /// Days for which the sign-in history is kept.
        pub history_kept("history_days"): Days<1, 3_650> = "180",
    }
    tables {
        /// Sign-in with Google.
        pub google: Google,
        /// Sign-in with Kakao.
        pub kakao: Kakao,
        /// Sign-in with Naver.
        pub naver: Naver,
    }
    beside {
        /// URL of the site for links in mails, without a slash at the end.
        pub site_url: String = "http://localhost:3001".to_owned(),
        /// How long an access token is valid. Verifiers must keep a revocation at least as long.
        pub access_lifetime: Duration = access::LIFETIME,
        /// How passwords are hashed.
        pub hashing: Hashing = Hashing::default(),
    }
}

impl Settings {
    /// Whether cookies are `Secure`; only an explicit `false` disables it.
    pub fn secure_cookies(&self) -> bool {
        self.cookie_secure != Some(false)
    }

    /// Whether administrators need a second factor.
    pub(crate) fn admin_needs_second_factor(&self) -> bool {
        self.admin_second_factor == Some(SecondFactor::Required)
    }

    /// How personal data is stored; `None` without an index key.
    pub fn pii(&self) -> Option<Pii> {
        Some(Pii {
            index: IndexKey::derive(self.index_key.as_ref()?.expose().as_bytes()),
            keys: self.sealing_keys().expect("the keys were validated with the section"),
            takes_plain: self.pii_seal_plain,
        })
    }

    /// The encryption keys, if there are any.
    pub fn sealing_keys(&self) -> Result<Option<PiiKeys>, BadKeys> {
        let Some(first) = self.pii_keys.first() else { return Ok(None) };
        let keys: BTreeMap<_, _> = self.pii_keys.iter().map(|key| (key.id.clone(), key.key)).collect();
        PiiKeys::new(first.id.clone(), keys).map(Some)
    }

    /// The enabled sign-in providers.
    pub fn social(&self) -> SocialConfig {
        SocialConfig {
            google: self.google.config(),
            kakao: self.kakao.config(),
            naver: self.naver.config(),
            ..SocialConfig::default()
        }
    }

    /// PortOne, if it is used.
    pub fn portone(&self) -> Option<PortOneConfig> {
        if self.identity != Some(IdentityKind::Portone) {
            return None;
        }
        Some(PortOneConfig {
            base_url: self.portone_url.expose().to_owned(),
            secret: Sensitive::new(self.portone_secret.as_ref()?.expose()),
            store_id: self.portone_store_id.clone()?,
            channel_key: self.portone_channel_key.clone()?,
        })
    }

    /// The identity provider, if enabled.
    pub fn identity_provider(&self, clock: &Clock) -> Result<Option<Arc<dyn IdentityProvider>>, BadPortOne> {
        if self.identity == Some(IdentityKind::Sandbox) {
            return Ok(Some(Arc::new(Sandbox)));
        }
        match self.portone() {
            Some(portone) => Ok(Some(Arc::new(PortOne::new(portone, clock.clone())?))),
            None => Ok(None),
        }
    }

    /// Reports settings that contradict each other.
    pub fn check(&self, production: bool, problems: &mut Problems<'_>) {
        self.check_keys(problems);
        self.check_identity(production, problems);
        self.google.check(problems);
        self.kakao.check(problems);
        self.naver.check(problems);
        if self.naver.client_id.is_some() && self.naver.client_secret.is_none() {
            let secret = const { Naver::info("auth.naver.client_secret") };
            problems.missing(secret, "auth.naver.client_id is");
        }
    }

    fn check_keys(&self, problems: &mut Problems<'_>) {
        let info = const { Self::info("auth.pii_keys") };
        if self.pii_keys.is_empty() {
            let why = "is only for auth.pii_keys, which seal; set them too, or remove it";
            problems.stray(const { Self::info("auth.pii_seal_plain") }, why);
        }
        let mut ids: Vec<&str> = self.pii_keys.iter().map(|key| key.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() < self.pii_keys.len() {
            problems.stray(info, "has two keys of one id");
        }
        if let Err(bad) = self.sealing_keys() {
            problems.stray(info, &format!("cannot be used: {bad}"));
        }
    }

    fn check_identity(&self, production: bool, problems: &mut Problems<'_>) {
        let parts = const {
            [
                Self::info("auth.portone_secret"),
                Self::info("auth.portone_store_id"),
                Self::info("auth.portone_channel_key"),
            ]
        };
        let there = [
            self.portone_secret.is_some(),
            self.portone_store_id.is_some(),
            self.portone_channel_key.is_some(),
        ];
        for (info, is_there) in parts.into_iter().zip(there) {
            match (self.identity == Some(IdentityKind::Portone), is_there) {
                (true, false) => problems.missing(info, "auth.identity = portone needs it"),
                (false, true) => {
                    problems.stray(info, "is only for auth.identity = portone; set that too, or remove it");
                }
                _ => {}
            }
        }
        let sandbox = self.identity == Some(IdentityKind::Sandbox);
        if sandbox && production && !self.identity_allow_sandbox {
            let why = "= sandbox, but profile = production does not take made-up persons for real ones; choose \
                       portone or off, or set auth.identity_allow_sandbox = true";
            problems.stray(const { Self::info("auth.identity") }, why);
        }
    }
}

/// `id:key`: a key that encrypts personal data, and the id stored with each value.
#[derive(Clone, PartialEq, Eq)]
pub struct PiiKey {
    /// Which key.
    pub id: String,
    /// The key itself.
    pub key: [u8; 32],
}

impl fmt::Debug for PiiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:***", self.id)
    }
}

impl Kind for PiiKey {
    type Value = Self;

    const SECRET: bool = true;

    fn describe() -> String {
        "`id:key`, the key as 32 bytes in base64".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "is not id:key with 32 bytes in base64, such as from `openssl rand -base64 32`";
        let (id, key) = text.split_once(':').ok_or(WANTED)?;
        let key =
            BASE64_STANDARD.decode(key.trim()).ok().and_then(|key| key.try_into().ok()).ok_or(WANTED)?;
        Ok(Self { id: id.trim().to_owned(), key })
    }

    fn show(text: &str) -> String {
        text.split_once(':').map_or_else(|| REDACTED.to_owned(), |(id, _)| format!("{id}:***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GoogleConfig;

    #[test]
    fn the_default_issuer_is_google() {
        assert_eq!(Settings::default().google.issuer.expose(), GoogleConfig::ISSUER);
    }

    #[test]
    fn keys_of_personal_data_have_an_id_and_32_bytes_and_do_not_print() {
        let text = "2026:q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
        let key = PiiKey::parse(text).unwrap();
        assert_eq!((key.id.as_str(), key.key), ("2026", [171; 32]));
        assert_eq!(PiiKey::show(text), "2026:***");
        assert_eq!(format!("{key:?}"), "2026:***");
        for wrong in ["q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", "2026:q6ur", "2026:hunter2!"] {
            let said = PiiKey::parse(wrong).unwrap_err();
            assert!(said.contains("openssl rand") && !said.contains(wrong), "{said}");
        }
    }
}
