//! Redirect sign-in through the binary, with a substitute of Kakao on this machine.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use serde_json::json;

use crate::process::{Answer, WorkDir};

/// A minimal Kakao: a token endpoint that accepts one code, and a user endpoint with one user. It
/// runs until the test process ends.
#[expect(clippy::disallowed_methods, reason = "the fake provider needs no clean shutdown")]
fn kakao() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(&stream)));
    url
}

fn answer(mut stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut form = vec![0; length];
    reader.read_exact(&mut form).unwrap();
    let body = if first.starts_with("POST /token ") {
        let form = String::from_utf8(form).unwrap();
        assert!(form.contains("code=the-code") && form.contains("client_secret=hush"), "{form}");
        json!({ "access_token": "for one question" })
    } else {
        let account =
            json!({ "email": "minji@example.com", "is_email_valid": true, "is_email_verified": true });
        json!({ "id": 7, "kakao_account": account })
    };
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("no {name} in {answer:?}")).1
}

#[test]
fn a_kakao_user_accepts_the_terms_and_is_signed_in() {
    let (work_dir, url) = (WorkDir::new(), kakao());
    work_dir.write(
        "urr.toml",
        &format!(
            "[auth.kakao]\nclient_id = \"us\"\nclient_secret = \"hush\"\nauthorize_url = \"{url}/authorize\"\n\
             token_url = \"{url}/token\"\nuser_url = \"{url}/me\"\n"
        ),
    );
    let serving = work_dir.serve(&[]);
    let offered = serving.get("/api/v1/auth/providers").json();
    assert_eq!(
        offered,
        json!({ "providers": [{ "provider": "kakao", "clientId": "us", "start": "/api/auth/kakao/start" }] })
    );
    assert_eq!(serving.get("/api/auth/google/start").json()["code"], "auth.provider_off");

    let away = serving.get("/api/auth/kakao/start?returnTo=/events");
    assert_eq!(away.status, 302, "{away:?}");
    let location = header(&away, "location");
    assert!(location.starts_with(&format!("{url}/authorize?")), "{location}");
    let state = location.split("&state=").nth(1).unwrap().split('&').next().unwrap();

    let path = format!("/api/auth/kakao/callback?code=the-code&state={state}");
    let browser = [("cookie", away.cookies()), ("accept", "text/html".to_owned())];
    let browser = browser.each_ref().map(|(name, value)| (*name, value.as_str()));
    let back = serving.ask("GET", &path, &browser, "");
    assert_eq!(
        (back.status, header(&back, "location")),
        (303, "/register?provider=kakao&returnTo=%2Fevents")
    );
    let again = serving.ask("GET", &path, &browser, "");
    assert_eq!(header(&again, "location"), "/login?error=auth.trip_invalid&provider=kakao");

    let agreed = json!({ "name": "민지", "agreements": [
        { "type": "SERVICE", "agreed": true }, { "type": "PRIVACY", "agreed": true },
    ]});
    let (cookies, page) = (back.cookies(), format!("http://{}", serving.address));
    let headers = [("content-type", "application/json"), ("cookie", &*cookies), ("origin", &*page)];
    let made = serving.ask("POST", "/api/auth/sign-up", &headers, &agreed.to_string());
    assert_eq!(made.status, 201, "{made:?}");
    let bearer = format!("Bearer {}", made.json()["token"].as_str().unwrap());
    let me = serving.ask("GET", "/api/auth/me", &[("authorization", &bearer)], "").json();
    assert_eq!(
        (&me["user"]["email"], &me["user"]["emailVerified"]),
        (&json!("minji@example.com"), &json!(true))
    );
    serving.stop();
}
