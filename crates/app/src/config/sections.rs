//! Sections of the process itself.

use std::net::SocketAddr;

use urr_settings::{Email, HttpUrl, Kind, List, Millis, REDACTED, Secret, settings};

settings! {
    /// `[internal]`.
    pub(crate) struct Internal in "internal"
        "The listener through which other processes reach the roles of this one."
    {
        /// Address for calls from other processes. Left out, nothing listens.
        pub listen: Option<SocketAddr> = "",
        /// The token that calls between processes carry; the same in all of them.
        pub token: Option<Secret<16>> = "",
    }
}

settings! {
    /// `[aws]`.
    pub(crate) struct Aws in "aws"
        "DynamoDB and SQS, for a binary that was built with the feature `aws`: [aws.md](aws.md)."
    {
        /// Region of DynamoDB and SQS, such as `ap-northeast-2`.
        pub region: Option<String> = "",
        /// Milliseconds one call may take.
        pub deadline("deadline_ms"): Millis<50, 10_000> = "500",
        /// A substitute for DynamoDB's own server. Plain `http` on this machine only, where it gets
        /// made-up credentials.
        pub dynamodb_endpoint: Option<HttpUrl> = "",
        /// A substitute for SQS's own server, likewise.
        pub sqs_endpoint: Option<HttpUrl> = "",
    }
}

settings! {
    /// `[security]`.
    pub(crate) struct Security in "security" "Keys." {
        /// The key from which the keys of every signed token are derived; the same in all
        /// processes.
        pub secret: Option<SigningSecret> = "",
        /// Former values of `security.secret` whose tokens are still accepted, so that a change
        /// does not end sessions.
        pub former_secrets: List<SigningSecret> = "",
    }
}

settings! {
    /// `[admin]`.
    pub(crate) struct Admin in "admin"
        "The first administrator, created by the first start that finds none. Without both, the first start of the \
         `local` profile on SQLite creates one and prints a generated password once; elsewhere `urr admin create` does."
    {
        /// The account's address.
        pub email: Option<Email> = "",
        /// The account's password.
        pub password: Option<Secret<12>> = "",
    }
}

/// The secret that signing keys are derived from. `passes` refuses one that is too short or too
/// simple.
#[derive(Clone, Debug)]
pub(crate) struct SigningSecret(pub urr_passes::Secret);

impl Kind for SigningSecret {
    type Value = Self;

    const SECRET: bool = true;

    fn describe() -> String {
        "secret of 32 bytes or more".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let made = urr_passes::Secret::new(text).map(Self);
        made.map_err(|weak| format!("is too weak: {weak}; make one with `openssl rand -hex 32`"))
    }

    fn show(_: &str) -> String {
        REDACTED.to_owned()
    }
}
