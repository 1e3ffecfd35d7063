//! Alternative spellings of a path do not bypass the guards.

use urr_e2e::{
    http::{Connection, Request},
    installation::Installation,
    people,
};

/// Admin endpoints, by method and path.
const OPERATORS: [(&str, &str); 3] = [
    ("GET", "/api/admin/seat-layouts"),
    ("PUT", "/api/admin/users/0197f3a0-0000-7000-8000-000000000001/role"),
    ("POST", "/api/admin/events"),
];

/// Spellings of a path below `/api/` that some server treats as the path itself.
fn disguises(path: &str) -> Vec<String> {
    let rest = path.trim_start_matches("/api/");
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    vec![
        format!("/{path}"),
        format!("//api//{rest}"),
        format!("{path}/"),
        format!("{path}."),
        format!("{path}%20"),
        format!("{path}%00"),
        format!("{path}%2f"),
        format!("{path};x=1"),
        format!("/api/./{rest}"),
        format!("/api/%2e/{rest}"),
        format!("/api/auth/../{rest}"),
        format!("/api/auth/%2e%2e/{rest}"),
        format!("/api/auth/..;/{rest}"),
        format!("/api/auth%2f..%2f{rest}"),
        format!("/api/v1/../{rest}"),
        format!("/api/v1/v1/{rest}"),
        format!("/api/%61{}/{tail}", &first[1..]),
        format!("/api/{}/{tail}", first.to_uppercase()),
        format!("/API/{rest}"),
        format!("/api%2f{rest}"),
        format!("/api/{first};x/{tail}"),
        format!("/api/events/../{rest}"),
        format!("/static/../api/{rest}"),
        format!("/static/%2e%2e/api/{rest}"),
        format!("http://elsewhere.example{path}"),
        path.replacen("/api/", "/api/v1/", 1),
        format!("{path}?path=/api/events"),
    ]
}

pub(crate) async fn path_spelling_does_not_bypass_guards(installation: &Installation) -> anyhow::Result<()> {
    let user = people::register(&mut installation.connect(), "tricks@example.com").await?;
    let mut connection = installation.connect();
    for (method, path) in OPERATORS {
        for disguise in disguises(path) {
            for token in [None, Some(user.access.as_str())] {
                let overrides = [
                    ("x-http-method-override", "GET"),
                    ("x-original-url", "/api/events"),
                    ("x-user-role", "admin"),
                ];
                let request =
                    Request { method, path: &disguise, token, headers: &overrides, ..Request::default() };
                let answer = connection.send(&request).await?;
                let verdict = matches!(answer.status, 400 | 401 | 403 | 404 | 405);
                assert!(verdict, "{method} {disguise} as {token:?}: {}", answer.show());
            }
        }
    }
    for listener in installation.listeners() {
        for path in
            ["/internal/roles", "/internal/auth/revocations", "/api/../internal/roles", "/internal%2froles"]
        {
            let answer = Connection::to(listener).send(&Request::get(path)).await?;
            assert_eq!(answer.status, 404, "{path}: {}", answer.show());
        }
    }
    Ok(())
}
