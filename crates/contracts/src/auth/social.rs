//! Signing in with an account somewhere else, and which of them belong to an account here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;
use uuid::Uuid;

use super::{Agreement, Language, LoginMethod, LoginOutcome, Origin, Sensitive};

/// Somebody else who knows who people are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Google, by OpenID Connect.
    Google,
    /// Kakao, by OAuth 2.
    Kakao,
    /// Naver, by OAuth 2.
    Naver,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 3] = [Self::Google, Self::Kakao, Self::Naver];

    /// The name in paths, settings and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Kakao => "kakao",
            Self::Naver => "naver",
        }
    }

    /// How a sign-in with it is remembered.
    pub const fn method(self) -> LoginMethod {
        match self {
            Self::Google => LoginMethod::Google,
            Self::Kakao => LoginMethod::Kakao,
            Self::Naver => LoginMethod::Naver,
        }
    }

    /// The provider of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }
}

/// Asks which providers are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListProviders {}

/// The providers that are on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Providers {
    /// In a fixed order.
    pub providers: Vec<Offer>,
}

/// One way to sign in, for the page that offers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Whose.
    pub provider: Provider,
    /// Our public name there.
    pub client_id: String,
    /// Whether a browser can be sent there and back.
    pub redirect: bool,
}

/// Signs in with an ID token that Google gave to the browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleSignIn {
    /// The ID token. It is good once.
    pub credential: Sensitive,
    /// What the browser keeps of the nonce that the token was asked for with, if it was asked for with one.
    pub slip: Option<Sensitive>,
    /// What was agreed to. Service and privacy are required of somebody new.
    pub agreements: Vec<Agreement>,
    /// The language of mails, for somebody new.
    pub language: Language,
    /// Where the request comes from.
    pub origin: Origin,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoogleSignedIn {
    /// As after a password.
    pub outcome: LoginOutcome,
    /// Where Google keeps a picture of the user. It is not kept here.
    pub picture: Option<String>,
}

/// Sends a browser to a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTrip {
    /// Where to.
    pub provider: Provider,
    /// The page to show afterwards: a path of this site. `None` is the first page.
    pub return_to: Option<String>,
}

/// How a browser gets to a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// The provider's page.
    pub location: String,
    /// What the browser must bring back. It is a cookie, so that only the browser that left can return.
    pub slip: Sensitive,
    /// When it is too late to return.
    pub expires_at: Timestamp,
}

/// A browser returned from a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTrip {
    /// From where.
    pub provider: Provider,
    /// What the browser was to bring back.
    pub slip: Option<Sensitive>,
    /// What the provider was to send back.
    pub state: Option<Sensitive>,
    /// What the provider tells us to ask with.
    pub code: Option<Sensitive>,
    /// What the provider says instead, such as `access_denied`.
    pub refusal: Option<String>,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Where a trip ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TripEnd {
    /// The page to show: a path of this site.
    pub return_to: String,
    /// What came of it.
    pub outcome: TripOutcome,
}

/// What came of a trip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trip", rename_all = "snake_case")]
pub enum TripOutcome {
    /// Somebody we know: as after a password.
    Login {
        /// What came of signing in.
        login: LoginOutcome,
    },
    /// Somebody new, who has not agreed to anything yet. Nothing was made.
    SignUp {
        /// How to go on.
        offer: Box<SignUpOffer>,
    },
    /// The account elsewhere belongs to the account that asked for it now.
    Linked {
        /// Which.
        linked: LinkedAccount,
    },
}

/// An account that somebody can have once they agree to the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignUpOffer {
    /// What to come back with.
    pub slip: Sensitive,
    /// When it is too late.
    pub expires_at: Timestamp,
    /// Who knows them.
    pub provider: Provider,
    /// Their address, if the provider told it.
    pub email: Option<String>,
    /// Whether the provider vouches for the address. Otherwise it has to be given, and is proved by a mailed link.
    pub email_verified: bool,
    /// What to call them, if the provider told it.
    pub name: Option<String>,
}

/// Makes the account that was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignUp {
    /// What the offer said to come back with.
    pub slip: Sensitive,
    /// The address, if the provider did not vouch for one.
    pub email: Option<String>,
    /// What to call the owner; what the provider said if it is left out.
    pub name: Option<String>,
    /// What was agreed to. Service and privacy are required.
    pub agreements: Vec<Agreement>,
    /// The language of mails.
    pub language: Language,
    /// Where the request comes from.
    pub origin: Origin,
}

/// Asks by what means the calling user can sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLinked {}

/// By what means a user can sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAccounts {
    /// Whether there is a password.
    pub password: bool,
    /// Accounts elsewhere, the first linked first.
    pub accounts: Vec<LinkedAccount>,
}

/// An account elsewhere that belongs to an account here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedAccount {
    /// Where.
    pub provider: Provider,
    /// Since when it belongs to the account.
    pub linked_at: Timestamp,
    /// When somebody last signed in with it.
    pub last_used_at: Option<Timestamp>,
}

/// Proof that it is the owner who changes how the account is entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerProof {
    /// The password, for an account that has one.
    pub password: Option<Sensitive>,
    /// The session of the caller's access token: an account without a password wants one that has just begun.
    pub session: Option<Uuid>,
}

/// Makes an account elsewhere a way into the calling user's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAccount {
    /// Where.
    pub provider: Provider,
    /// Proof of the account here.
    pub proof: OwnerProof,
    /// Proof of the account there: an ID token, which only Google gives. Without it the browser is sent there.
    pub credential: Option<Sensitive>,
    /// What the browser keeps of the nonce that the ID token was asked for with.
    pub slip: Option<Sensitive>,
    /// The page to show afterwards: a path of this site.
    pub return_to: Option<String>,
    /// Where the request comes from.
    pub origin: Origin,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "link", rename_all = "snake_case")]
pub enum LinkOutcome {
    /// It is linked.
    Linked {
        /// Which.
        linked: LinkedAccount,
    },
    /// The browser has to prove the account there first.
    Trip {
        /// How it gets there.
        trip: Trip,
    },
}

/// Makes an account elsewhere no longer a way into the calling user's account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlinkAccount {
    /// Where.
    pub provider: Provider,
    /// Proof of the account here.
    pub proof: OwnerProof,
    /// Where the request comes from.
    pub origin: Origin,
}
