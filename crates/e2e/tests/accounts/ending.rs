//! A revoked session is refused by every process within a second.

use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use urr_e2e::{
    http::{Connection, Request},
    installation::Installation,
    people::{self, ADMIN, PASSWORD, Person},
};
use urr_kernel::Clock;

/// How long a token may remain valid after the response that revoked its session.
const SOON: Duration = Duration::from_secs(1);

/// Pause between two polls.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// What revokes a session.
#[derive(Clone, Copy, Debug)]
enum End {
    Logout,
    PasswordChange,
    RefreshReuse,
    RoleChange,
}

impl End {
    async fn happen(self, connection: &mut Connection, person: &Person) -> anyhow::Result<()> {
        let (answer, wanted) = match self {
            Self::Logout => (people::logout(connection, person).await?, 200),
            Self::PasswordChange => {
                let body = json!({ "currentPassword": PASSWORD, "newPassword": "another horse entirely" });
                let request = Request::post("/api/auth/password", &body).by(&person.access);
                (connection.send(&request).await?, 200)
            }
            Self::RefreshReuse => {
                let renewed = people::refresh(connection, &person.refresh).await?;
                ensure!(renewed.status == 200, "{}", renewed.show());
                let body = json!({ "refreshToken": person.refresh });
                let thief = Request {
                    headers: &[("user-agent", "somebody else")],
                    ..Request::post("/api/auth/refresh", &body)
                };
                (connection.send(&thief).await?, 401)
            }
            Self::RoleChange => {
                let boss = people::sign_in(connection, ADMIN).await?;
                (people::set_role(connection, &boss, person, "admin").await?, 200)
            }
        };
        ensure!(answer.status == wanted, "{self:?}: {}", answer.show());
        Ok(())
    }
}

pub(crate) async fn revoked_tokens_are_refused_everywhere_within_a_second(
    installation: &Installation,
) -> anyhow::Result<()> {
    for (number, end) in
        [End::Logout, End::PasswordChange, End::RefreshReuse, End::RoleChange].into_iter().enumerate()
    {
        let mut connection = installation.connect();
        let person = people::register(&mut connection, &format!("ending{number}@example.com")).await?;
        let mut listeners: Vec<_> = installation.listeners().into_iter().map(Connection::to).collect();
        let request = Request::get("/api/reservations/my").by(&person.access);
        for listener in &mut listeners {
            let answer = listener.send(&request).await?;
            // The process with `auth` alone has no reservations, but it checks the token first.
            assert!(matches!(answer.status, 200 | 404), "{end:?}: {}", answer.show());
        }
        end.happen(&mut connection, &person).await?;
        let clock = Clock::system();
        for listener in &mut listeners {
            loop {
                let answer = listener.send(&request).await?;
                if answer.status == 401 {
                    assert_eq!(answer.code(), "auth.token_revoked", "{end:?}: {}", answer.show());
                    break;
                }
                let took = clock.ticks();
                assert!(took <= SOON, "{end:?}: still accepted after {took:?}: {}", answer.show());
                tokio::time::sleep(ASK_AGAIN).await;
            }
        }
    }
    Ok(())
}
