//! Redirect sign-in.

use super::of_env as load;

#[test]
fn a_provider_is_off_until_it_has_a_client_id() {
    let social = load(&[]).unwrap().auth.social();
    assert!(social.google.is_none() && social.kakao.is_none() && social.naver.is_none());
    let settings = [
        ("GOOGLE_CLIENT_ID", "us.apps.googleusercontent.com"),
        ("URR_AUTH_KAKAO_CLIENT_ID", "kakao-id"),
        ("URR_AUTH_NAVER_CLIENT_ID", "naver-id"),
        ("URR_AUTH_NAVER_CLIENT_SECRET", "hush, hush"),
    ];
    let config = load(&settings).unwrap();
    let social = config.auth.social();
    assert_eq!(social.google.as_ref().unwrap().issuer, urr_auth::GoogleConfig::ISSUER);
    assert_eq!(social.kakao.as_ref().unwrap().user_url, "https://kapi.kakao.com/v2/user/me");
    assert_eq!(social.naver.as_ref().unwrap().client_secret.as_ref().unwrap().expose(), "hush, hush");
    assert!(!format!("{config:?}").contains("hush"), "secrets are not printed");
}

#[test]
fn an_incomplete_provider_is_refused() {
    let refused = |settings: &[(&str, &str)]| {
        let problems = load(settings).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].to_string()
    };
    let stray = refused(&[("URR_AUTH_GOOGLE_CLIENT_SECRET", "hush")]);
    assert!(stray.contains("auth.google.client_id") && !stray.contains("hush"), "{stray}");
    let naver = refused(&[("URR_AUTH_NAVER_CLIENT_ID", "id")]);
    assert!(naver.contains("auth.naver.client_secret"), "{naver}");
    let plain =
        [("URR_AUTH_KAKAO_CLIENT_ID", "id"), ("URR_AUTH_KAKAO_TOKEN_URL", "http://kakao.example/token")];
    let plain = refused(&plain);
    assert!(plain.contains("https://"), "{plain}");
    let here = [("URR_AUTH_GOOGLE_CLIENT_ID", "id"), ("URR_AUTH_GOOGLE_ISSUER", "http://127.0.0.1:9/")];
    assert_eq!(load(&here).unwrap().auth.social().google.unwrap().issuer, "http://127.0.0.1:9");
}
