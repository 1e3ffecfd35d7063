//! The life of an account.

use serde_json::json;
use urr_e2e::{
    http::{Answer, Connection, Request},
    installation::Installation,
    people::{self, ADMIN, PASSWORD, Person},
};

use crate::phone;

async fn get(connection: &mut Connection, path: &str, token: &str) -> anyhow::Result<Answer> {
    Ok(connection.send(&Request::get(path).by(token)).await?)
}

pub(crate) async fn account_lifecycle(installation: &Installation) -> anyhow::Result<()> {
    let mut connection = installation.connect();
    let here = people::register(&mut connection, "minji@example.com").await?;
    let me = get(&mut connection, "/api/auth/me", &here.access).await?;
    assert_eq!(
        (me.status, me.json()["user"]["email"].as_str()),
        (200, Some("minji@example.com")),
        "{}",
        me.show()
    );
    let mine = get(&mut connection, "/api/reservations/my", &here.access).await?;
    assert_eq!(mine.status, 200, "{}", mine.show());
    let wrong = people::login(&mut connection, "minji@example.com", "wrong horse battery staple").await?;
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "auth.invalid_credentials"));

    let there = people::sign_in(&mut connection, "minji@example.com").await?;
    let list = get(&mut connection, "/api/auth/sessions", &there.access).await?.json();
    let sessions = list["sessions"].as_array().cloned().unwrap_or_default();
    assert_eq!(sessions.len(), 2, "{list}");
    let current: Vec<_> = sessions.iter().filter(|session| session["current"] == true).collect();
    assert_eq!(current.len(), 1, "the calling session: {list}");

    let renewed = people::refresh(&mut connection, &here.refresh).await?;
    assert_eq!(renewed.status, 200, "{}", renewed.show());
    let here = Person::from_answer(&renewed)?;
    assert_eq!(get(&mut connection, "/api/auth/me", &here.access).await?.status, 200);

    let other = sessions.iter().find(|session| session["current"] == false);
    let other = other.and_then(|session| session["id"].as_str()).unwrap_or_default();
    let path = format!("/api/auth/sessions/{other}");
    let end = Request { method: "DELETE", path: &path, ..Request::default() };
    let ended = connection.send(&end.by(&there.access)).await?;
    assert_eq!(ended.status, 200, "{}", ended.show());
    let refused = people::refresh(&mut connection, &here.refresh).await?;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (401, "auth.refresh_invalid"),
        "{}",
        refused.show()
    );

    assert_eq!(people::logout(&mut connection, &there).await?.status, 200);
    let history = get(&mut connection, "/api/auth/history", &there.access).await?;
    assert_eq!(history.status, 401, "{}", history.show());
    Ok(())
}

/// An account registered with a foreign address, whose owner then follows the mailed link.
pub(crate) async fn address_owner_takes_over_unverified_account(
    installation: &Installation,
) -> anyhow::Result<()> {
    const EMAIL: &str = "victim@example.com";
    const NEW: &str = "what only the owner can know";
    let mut connection = installation.connect();
    let squatter = people::register(&mut connection, EMAIL).await?;
    let mails = &installation.auth.data_dir;
    let token = people::mailed(mails, EMAIL, "/verify-email").await;
    let clicked =
        connection.send(&Request::post("/api/auth/email/verify", &json!({ "token": token }))).await?;
    assert_eq!((clicked.status, clicked.code().as_str()), (403, "auth.proof_required"), "{}", clicked.show());
    phone::turn_on(&mut connection, &squatter).await?;

    let forgot = Request::post("/api/auth/password/forgot", &json!({ "email": EMAIL }));
    assert_eq!(connection.send(&forgot).await?.status, 202);
    let token = people::mailed(mails, EMAIL, "/reset-password").await;
    let body = json!({ "token": token, "password": NEW });
    let reset = connection.send(&Request::post("/api/auth/password/reset", &body)).await?;
    assert_eq!(reset.status, 200, "{}", reset.show());
    let stale = people::login(&mut connection, EMAIL, PASSWORD).await?;
    assert_eq!((stale.status, stale.code().as_str()), (400, "auth.invalid_credentials"), "{}", stale.show());
    let owner = people::login(&mut connection, EMAIL, NEW).await?;
    assert_eq!(owner.status, 200, "no second factor is required: {}", owner.show());
    let owner = Person::from_answer(&owner)?;
    let me = get(&mut connection, "/api/auth/me", &owner.access).await?.json();
    assert_eq!(
        (&me["user"]["emailVerified"], &me["user"]["secondFactor"]),
        (&true.into(), &false.into()),
        "{me}"
    );
    Ok(())
}

pub(crate) async fn admin_role_is_granted_and_revoked(installation: &Installation) -> anyhow::Result<()> {
    const HALLS: &str = "/api/admin/seat-layouts";
    let mut connection = installation.connect();
    let boss = people::sign_in(&mut connection, ADMIN).await?;
    let new = people::register(&mut connection, "new@example.com").await?;
    let refused = get(&mut connection, HALLS, &new.access).await?;
    assert_eq!((refused.status, refused.code().as_str()), (403, "auth.admin_required"));
    let own = people::set_role(&mut connection, &new, &new, "admin").await?;
    assert_eq!(
        (own.status, own.code().as_str()),
        (403, "auth.admin_required"),
        "no user can change their own role"
    );

    let appointed = people::set_role(&mut connection, &boss, &new, "admin").await?;
    assert_eq!(appointed.status, 200, "{}", appointed.show());
    let new = people::sign_in(&mut connection, "new@example.com").await?;
    assert_eq!(get(&mut connection, HALLS, &new.access).await?.status, 200);
    let dismissed = people::set_role(&mut connection, &boss, &new, "user").await?;
    assert_eq!(dismissed.status, 200, "{}", dismissed.show());
    let answer = people::login(&mut connection, "new@example.com", PASSWORD).await?;
    let new = Person::from_answer(&answer)?;
    assert_eq!(get(&mut connection, HALLS, &new.access).await?.status, 403);
    Ok(())
}
