//! Errors survive serialisation: the restored value equals the original.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use urr_contracts::{auth, catalog, queue, tickets, vwr};
use urr_kernel::{CommonError, SeatId, Timestamp};
use urr_rpc::{ServiceError, problem, restore};
use uuid::Uuid;

fn crosses_whole<E: ServiceError + PartialEq + std::fmt::Debug>(error: E) {
    let problem = problem(&error);
    assert_eq!(problem.status, error.kind().status());
    let body = serde_json::to_vec(&problem).unwrap();
    assert_eq!(restore::<E>(&body), Some(error));
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
fn errors_survive_serialisation() {
    let seats = vec![SeatId::from_uuid(Uuid::from_u128(7))];
    let at = Timestamp::from_micros(1_780_282_800_000_001);
    for error in [
        tickets::Error::NoSeats,
        tickets::Error::SeatsTaken { seats },
        tickets::Error::SaleEnded { ended_at: at },
        tickets::Error::NotPending { current: tickets::ReservationStatus::Confirmed },
    ] {
        crosses_whole(error);
    }
    crosses_whole(catalog::Error::Invalid { field: "title".to_owned(), reason: "It is empty".to_owned() });
    crosses_whole(auth::Error::TermsRequired {
        missing: vec![auth::TermsKind::Privacy],
        version: "1.0".to_owned(),
    });
    crosses_whole(auth::Error::IdentityTaken { free_from: Some(at) });
    crosses_whole(auth::Error::LinkRequired { provider: auth::Provider::Google });
    crosses_whole(queue::Error::NotConfirmed { waiting: 3, active: 2 });
    crosses_whole(queue::Error::PlaceOver { turn_used: true });
    crosses_whole(vwr::Error::BadRate { max: 10 });
}

#[test]
fn common_errors_have_one_code_in_every_service() {
    for (error, code) in [
        (CommonError::SignInRequired, "auth.required"),
        (CommonError::AdminRequired, "auth.admin_required"),
        (CommonError::SecondFactorRequired, "auth.second_factor_required"),
        (CommonError::Unavailable, "http.unavailable"),
        (CommonError::Internal, "http.internal"),
    ] {
        assert_eq!(problem(&tickets::Error::from(error)).code, code);
        assert_eq!(problem(&queue::Error::from(error)).code, code);
        crosses_whole(tickets::Error::from(error));
        crosses_whole(catalog::Error::from(error));
        crosses_whole(auth::Error::from(error));
        crosses_whole(queue::Error::from(error));
        crosses_whole(vwr::Error::from(error));
    }
}
