//! Every error survives serialisation: the restored value equals the original.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use urr_contracts::{auth, catalog, queue, tickets, vwr};
use urr_kernel::{SeatId, Timestamp};
use urr_rpc::{ServiceError, problem, restore};
use uuid::Uuid;

fn crosses_whole<E: ServiceError + PartialEq + std::fmt::Debug>(error: E) {
    let problem = problem(&error);
    assert_eq!(problem.status, error.kind().status());
    let body = serde_json::to_vec(&problem).unwrap();
    assert_eq!(restore::<E>(&body), Some(error));
}

/// One of each variant. The `match` below fails to compile when a new variant is missing.
fn tickets_errors() -> Vec<tickets::Error> {
    use tickets::Error::*;
    let seats = vec![SeatId::from_uuid(Uuid::from_u128(7))];
    let at = Timestamp::from_micros(1_780_282_800_000_001);
    let all = vec![
        NoSeats,
        TooManySeats { max: 4 },
        DuplicateSeats { seats: seats.clone() },
        EventNotFound,
        EventCancelled,
        NoSeatMap,
        SaleNotOpen { opens_at: at },
        SaleEnded { ended_at: at },
        SeatsNotFound { seats: seats.clone() },
        SeatsOfAnotherEvent { seats: seats.clone() },
        SeatsTaken { seats },
        UserLimit { max: 4, held: 3 },
        BadIdempotencyKey,
        IdempotencyKeysDiffer,
        IdempotencyKeyReused,
        ReservationNotFound,
        NotPending { current: tickets::ReservationStatus::Confirmed },
        SignInRequired,
        BadPage { max: 100 },
        Unavailable,
        Internal,
    ];
    for error in &all {
        match error {
            NoSeats
            | TooManySeats { .. }
            | DuplicateSeats { .. }
            | EventNotFound
            | EventCancelled
            | NoSeatMap
            | SaleNotOpen { .. }
            | SaleEnded { .. }
            | SeatsNotFound { .. }
            | SeatsOfAnotherEvent { .. }
            | SeatsTaken { .. }
            | UserLimit { .. }
            | BadIdempotencyKey
            | IdempotencyKeysDiffer
            | IdempotencyKeyReused
            | ReservationNotFound
            | NotPending { .. }
            | SignInRequired
            | BadPage { .. }
            | Unavailable
            | Internal => {}
        }
    }
    all
}

fn catalog_errors() -> Vec<catalog::Error> {
    use catalog::Error::*;
    let invalid = Invalid { field: "title".to_owned(), reason: "must not be blank".to_owned() };
    let all = vec![EventNotFound, LayoutNotFound, invalid, AdminRequired, Unavailable, Internal];
    for error in &all {
        match error {
            EventNotFound | LayoutNotFound | Invalid { .. } | AdminRequired | Unavailable | Internal => {}
        }
    }
    all
}

fn vwr_errors() -> Vec<vwr::Error> {
    use vwr::Error::*;
    let all = vec![
        RoomNotFound,
        NotActive,
        PositionNotFound,
        NotYourPlace,
        AdminRequired,
        BadRate { max: 7 },
        BadBatch { max: 7 },
        Unavailable,
        Internal,
    ];
    for error in &all {
        match error {
            RoomNotFound
            | NotActive
            | PositionNotFound
            | NotYourPlace
            | AdminRequired
            | BadRate { .. }
            | BadBatch { .. }
            | Unavailable
            | Internal => {}
        }
    }
    all
}

fn queue_errors() -> Vec<queue::Error> {
    use queue::Error::*;
    let all = vec![
        EventNotFound,
        EventCancelled,
        SaleEnded,
        SignInRequired,
        AdminRequired,
        LineFull { max: 7 },
        TooManyLines { max: 7 },
        PassTaken,
        PlaceOver { turn_used: true },
        BadThreshold { max: 7 },
        NotConfirmed { waiting: 7, active: 3 },
        Unavailable,
        Internal,
    ];
    for error in &all {
        match error {
            EventNotFound
            | EventCancelled
            | SaleEnded
            | SignInRequired
            | AdminRequired
            | LineFull { .. }
            | TooManyLines { .. }
            | PassTaken
            | PlaceOver { .. }
            | BadThreshold { .. }
            | NotConfirmed { .. }
            | Unavailable
            | Internal => {}
        }
    }
    all
}

fn auth_errors() -> Vec<auth::Error> {
    use auth::Error::*;
    let all = vec![
        Invalid { field: "email".to_owned(), reason: "Please enter an e-mail address".to_owned() },
        TermsRequired { missing: vec![auth::TermsKind::Privacy], version: "1.0".to_owned() },
        InvalidCredentials,
        WrongPassword,
        WrongCode,
        ChallengeInvalid,
        SecondFactorOn,
        SecondFactorOff,
        SecondFactorRequired,
        TooManyAttempts { wait_secs: 8 },
        Busy,
        RefreshRequired,
        RefreshInvalid,
        RefreshReused,
        TokenInvalid,
        LinkInvalid,
        SessionNotFound,
        UserNotFound,
        LastAdmin,
        AlreadyRegistered,
        IdentityOff,
        IdentityInvalid,
        IdentityPending,
        IdentityFailed,
        IdentityTaken { free_from: Some(Timestamp::from_micros(1_780_282_800_000_001)) },
        IdentityTaken { free_from: None },
        IdentityMismatch,
        IdentityUnavailable,
        ProviderOff,
        CredentialInvalid,
        CredentialUsed,
        TripInvalid,
        TripRefused,
        ProviderUnavailable { provider: auth::Provider::Google },
        LinkRequired { provider: auth::Provider::Google },
        EmailUnverified { provider: auth::Provider::Kakao },
        SignUpInvalid,
        LinkTaken,
        AlreadyLinked,
        NotLinked,
        LastWayIn,
        SignInAgain,
        ProofRequired,
        Required,
        AdminRequired,
        Unavailable,
        Internal,
    ];
    all.iter().for_each(is_listed);
    all
}

/// Fails to compile when a new variant is missing. Add it to the list above too.
fn is_listed(error: &auth::Error) {
    use auth::Error::*;
    match error {
        Invalid { .. }
        | TermsRequired { .. }
        | InvalidCredentials
        | WrongPassword
        | WrongCode
        | ChallengeInvalid
        | SecondFactorOn
        | SecondFactorOff
        | SecondFactorRequired
        | TooManyAttempts { .. }
        | Busy
        | RefreshRequired
        | RefreshInvalid
        | RefreshReused
        | TokenInvalid
        | LinkInvalid
        | SessionNotFound
        | UserNotFound
        | LastAdmin
        | AlreadyRegistered
        | IdentityOff
        | IdentityInvalid
        | IdentityPending
        | IdentityFailed
        | IdentityTaken { .. }
        | IdentityMismatch
        | IdentityUnavailable
        | ProviderOff
        | CredentialInvalid
        | CredentialUsed
        | TripInvalid
        | TripRefused
        | ProviderUnavailable { .. }
        | LinkRequired { .. }
        | EmailUnverified { .. }
        | SignUpInvalid
        | LinkTaken
        | AlreadyLinked
        | NotLinked
        | LastWayIn
        | SignInAgain
        | ProofRequired
        | Required
        | AdminRequired
        | Unavailable
        | Internal => {}
    }
}

#[test]
fn a_wait_is_in_the_header_and_in_the_body() {
    let told = problem(&auth::Error::TooManyAttempts { wait_secs: 8 });
    assert_eq!(told.retry_after, Some(std::time::Duration::from_secs(8)));
    assert_eq!(told.fields["wait_secs"], 8);
}

#[test]
fn secrets_are_not_printed() {
    let login = auth::Login {
        email: "a@example.com".to_owned(),
        password: auth::Sensitive::new("hunter22"),
        origin: auth::Origin::default(),
    };
    assert!(!format!("{login:?}").contains("hunter22"));
    assert!(
        serde_json::to_string(&login).unwrap().contains("hunter22"),
        "serialisation must keep the secret"
    );
}

#[test]
fn every_error_survives_serialisation() {
    tickets_errors().into_iter().for_each(crosses_whole);
    catalog_errors().into_iter().for_each(crosses_whole);
    auth_errors().into_iter().for_each(crosses_whole);
    queue_errors().into_iter().for_each(crosses_whole);
    vwr_errors().into_iter().for_each(crosses_whole);
}
