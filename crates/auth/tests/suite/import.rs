//! Import of accounts from another system.

use std::io::Cursor;

use serde_json::json;
use urr_auth::{BadLine, ImportError, Imported};
use urr_db::{Error as DbError, Tx};

use super::world::{ACCOUNTS, HASH, PASSWORD, TERMS, World, away};

const THEIRS: &str = "what they had elsewhere";

fn bcrypt(cost: u32) -> String {
    bcrypt::hash(THEIRS, cost).unwrap()
}

fn line(email: &str, hash: &str) -> String {
    json!({ "email": email, "name": "김민지", "passwordHash": hash }).to_string()
}

async fn import(world: &World, lines: &[String]) -> Result<Imported, Vec<BadLine>> {
    match urr_auth::import(&world.service, &mut Cursor::new(lines.join("\n"))).await {
        Ok(imported) => Ok(imported),
        Err(ImportError::BadLines(bad)) => Err(bad),
        Err(other) => panic!("{other:?}"),
    }
}

pub(crate) async fn imported_accounts_sign_in_with_their_old_password(world: &World) {
    let taken = world.register("taken@example.com").await;
    let argon2id = world.one(&HASH, &[&taken.account.id], |row| row.get::<String>(0)).await;
    let whole = json!({
        "email": " Minji@Example.com", "name": "김민지", "phone": "010-1234-5678",
        "passwordHash": bcrypt(4), "emailVerified": true,
    });
    let mut lines = vec![
        whole.to_string(),
        String::new(),
        line("hani@example.com", &argon2id),
        line("taken@example.com", &bcrypt(4)),
        line("HANI@example.com", &bcrypt(4)),
    ];
    // More than one batch.
    let many = bcrypt(4);
    lines.extend((0..250).map(|number| line(&format!("user{number}@example.com"), &many)));
    assert_eq!(import(world, &lines).await, Ok(Imported { made: 252, skipped: 2 }));
    assert_eq!(
        import(world, &lines).await,
        Ok(Imported { made: 0, skipped: 254 }),
        "a repeated import changes nothing"
    );
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 253);

    let minji = world.login("minji@example.com", THEIRS).await.unwrap();
    assert!(minji.account.email_verified);
    assert_eq!(minji.account.phone.as_deref(), Some("+821012345678"));
    let hash = world.one(&HASH, &[&minji.account.id], |row| row.get::<String>(0)).await;
    assert!(hash.starts_with("$argon2id$"), "rehashed: {hash}");
    let agreed: Result<Vec<String>, DbError> = world
        .db
        .read("test.terms", async |tx: &mut Tx<'_>| {
            tx.all(&TERMS, &[&minji.account.id], |row| row.get(0)).await
        })
        .await;
    assert!(agreed.unwrap().is_empty(), "no consent is recorded");
    let hani = world.login_from("hani@example.com", PASSWORD, &away(1)).await.unwrap();
    assert!(!hani.account.email_verified);
    world.login_from("user249@example.com", THEIRS, &away(2)).await.unwrap();
    world.login("taken@example.com", PASSWORD).await.expect("an existing account keeps its password");
    world.send_mails().await;
    assert!(world.mailbox.to("minji@example.com").is_empty(), "no mail is sent");
}

pub(crate) async fn one_invalid_line_aborts_the_import(world: &World) {
    let good = bcrypt(4);
    let (head, tail) = (&good[..4], &good[6..]);
    let lines = [
        line("good@example.com", &good),
        "nonsense".to_owned(),
        line("nobody", &good),
        line("plain@example.com", THEIRS),
        line("md5@example.com", "$1$abcdefgh$abcdefghijklmnopqrstuv"),
        line("dear@example.com", &format!("{head}15{tail}")),
        line("short@example.com", &good[..59]),
        json!({ "email": "a@example.com", "passwordHash": good }).to_string(),
        json!({ "email": "a@example.com", "name": "A", "passwordHash": good, "role": "admin" }).to_string(),
        json!({ "email": "a@example.com", "name": "A", "passwordHash": good, "phone": "12" }).to_string(),
        json!({ "email": "a@example.com", "name": "x".repeat(9_000), "passwordHash": good }).to_string(),
        line("good.too@example.com", &good),
    ];
    let bad = import(world, &lines).await.unwrap_err();
    assert_eq!(bad.iter().map(|bad| bad.number).collect::<Vec<_>>(), (2..=11).collect::<Vec<_>>(), "{bad:?}");
    let words =
        ["expected", "email", "bcrypt", "bcrypt", "14", "bcrypt", "name", "role", "phone", "too long"];
    for (bad, word) in bad.iter().zip(words) {
        assert!(bad.reason.contains(word) && !bad.reason.contains(THEIRS), "{bad:?}");
    }
    assert_eq!(world.count(&ACCOUNTS, &[]).await, 0);
    let many: Vec<String> = (0..100).map(|_| "nonsense".to_owned()).collect();
    assert_eq!(import(world, &many).await.unwrap_err().len(), 20, "the list is limited");
    assert_eq!(import(world, &[]).await, Ok(Imported::default()));
}
