//! What the mails say, in Korean and English.

use urr_contracts::auth::{Account, Language, Sensitive};

use super::Kind;

/// Subject and text of a mail. What the link carries stands behind a `#`: browsers do not send that part to any server, so
/// it is in no log and no `Referer`.
pub(super) fn write(
    kind: Kind,
    account: &Account,
    site_url: &str,
    carried: Option<&Sensitive>,
) -> (String, Sensitive) {
    let page = match kind {
        Kind::VerifyEmail => "/verify-email",
        Kind::ResetPassword => "/reset-password",
        Kind::AlreadyRegistered => "/login",
        Kind::PasswordChanged | Kind::SessionStolen | Kind::SecondFactorChanged | Kind::SignInChanged => {
            "/forgot-password"
        }
    };
    let link = carried.map_or_else(
        || format!("{site_url}{page}"),
        |carried| format!("{site_url}{page}#token={}", carried.expose()),
    );
    // Whoever signs up with somebody else's address must not have us mail them words of theirs.
    let name = Some(&account.name).filter(|_| account.email_verified);
    let (subject, body) = match account.language {
        Language::Ko => korean(kind),
        Language::En => english(kind),
    };
    let (greeting, farewell) = match account.language {
        Language::Ko => {
            (name.map_or("안녕하세요.".into(), |name| format!("{name}님, 안녕하세요.")), "우르르 드림")
        }
        Language::En => (name.map_or("Hello,".into(), |name| format!("Hello {name},")), "URR"),
    };
    let text = format!("{greeting}\n\n{}\n\n{farewell}\n", body.replace("{link}", &link));
    (subject.to_owned(), Sensitive::new(text))
}

fn korean(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::VerifyEmail => (
            "[우르르] 이메일 주소를 확인해 주세요",
            "아래 링크를 눌러 이메일 주소를 확인해 주세요. 링크는 24시간 동안 한 번만 쓸 수 있습니다.\n\n{link}\n\n\
             가입한 적이 없다면 이 메일을 무시하셔도 됩니다.",
        ),
        Kind::ResetPassword => (
            "[우르르] 비밀번호 재설정",
            "아래 링크에서 새 비밀번호를 정할 수 있습니다. 링크는 30분 동안 한 번만 쓸 수 있습니다.\n\n{link}\n\n\
             요청한 적이 없다면 이 메일을 무시하셔도 됩니다. 비밀번호는 그대로입니다.",
        ),
        Kind::AlreadyRegistered => (
            "[우르르] 이미 가입된 이메일 주소입니다",
            "누군가 이 이메일 주소로 회원 가입을 시도했지만, 이미 계정이 있어 새로 만들지 않았습니다.\n\
             본인이라면 아래에서 로그인하거나 비밀번호를 재설정해 주세요.\n\n{link}",
        ),
        Kind::PasswordChanged => (
            "[우르르] 비밀번호가 변경되었습니다",
            "비밀번호가 변경되어 모든 기기에서 로그아웃되었습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정해 주세요.\n\n{link}",
        ),
        Kind::SessionStolen => (
            "[우르르] 보안을 위해 로그아웃되었습니다",
            "같은 로그인 정보가 두 곳에서 쓰여 해당 로그인을 종료했습니다.\n\
             짐작 가는 일이 없다면 비밀번호를 재설정해 주세요.\n\n{link}",
        ),
        Kind::SecondFactorChanged => (
            "[우르르] 2단계 인증 설정이 변경되었습니다",
            "2단계 인증이 켜지거나 꺼졌거나, 복구 코드가 새로 만들어졌습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정하고 운영자에게 알려 주세요.\n\n{link}",
        ),
        Kind::SignInChanged => (
            "[우르르] 로그인 방법이 변경되었습니다",
            "다른 서비스의 계정이 내 계정에 연결되었거나 연결이 해제되었습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정하고 연결된 계정을 확인해 주세요.\n\n{link}",
        ),
    }
}

fn english(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::VerifyEmail => (
            "[URR] Please confirm your e-mail address",
            "Follow this link to confirm your e-mail address. It works once, for 24 hours.\n\n{link}\n\n\
             If you did not sign up, you can ignore this mail.",
        ),
        Kind::ResetPassword => (
            "[URR] Set a new password",
            "Follow this link to set a new password. It works once, for 30 minutes.\n\n{link}\n\n\
             If you did not ask for it, you can ignore this mail. Your password stays as it is.",
        ),
        Kind::AlreadyRegistered => (
            "[URR] You already have an account",
            "Somebody tried to sign up with this e-mail address. It has an account already, so no new one was made.\n\
             If it was you, please sign in or set a new password.\n\n{link}",
        ),
        Kind::PasswordChanged => (
            "[URR] Your password was changed",
            "Your password was changed, and you were signed out on all devices.\n\
             If it was not you, please set a new password at once.\n\n{link}",
        ),
        Kind::SessionStolen => (
            "[URR] You were signed out for your safety",
            "The same sign-in was used in two places, so we ended it.\n\
             If you cannot explain this, please set a new password.\n\n{link}",
        ),
        Kind::SecondFactorChanged => (
            "[URR] Your second factor was changed",
            "Your second factor was turned on or off, or you got new recovery codes.\n\
             If it was not you, please set a new password at once and tell whoever runs the site.\n\n{link}",
        ),
        Kind::SignInChanged => (
            "[URR] How you sign in was changed",
            "An account of another service was linked to your account, or unlinked from it.\n\
             If it was not you, please set a new password at once and look at the linked accounts.\n\n{link}",
        ),
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::auth::AccountStatus;
    use urr_kernel::{Clock, Role, UserId};
    use uuid::Uuid;

    use super::*;

    const KINDS: [Kind; 7] = [
        Kind::VerifyEmail,
        Kind::ResetPassword,
        Kind::AlreadyRegistered,
        Kind::PasswordChanged,
        Kind::SessionStolen,
        Kind::SecondFactorChanged,
        Kind::SignInChanged,
    ];

    #[test]
    fn every_mail_says_its_link_and_whoever_proved_the_address_is_called_by_name_in_both_languages() {
        for (language, email_verified) in [Language::Ko, Language::En]
            .into_iter()
            .flat_map(|language| [(language, true), (language, false)])
        {
            let account = Account {
                id: UserId::from_uuid(Uuid::nil()),
                email: "minji@example.com".to_owned(),
                email_verified,
                name: "김민지".to_owned(),
                phone: None,
                role: Role::User,
                status: AccountStatus::Active,
                language,
                marketing: false,
                second_factor: false,
                identity_verified_at: None,
                created_at: Clock::system().now(),
            };
            for kind in KINDS {
                let carried = kind.purpose().map(|_| Sensitive::new("abc"));
                let (subject, text) = write(kind, &account, "https://urr.example", carried.as_ref());
                let text = text.expose();
                assert!(text.contains("https://urr.example/"), "{text}");
                assert_eq!(text.contains("김민지"), email_verified, "{text}");
                assert!(!text.contains("{link}") && !subject.contains('\n'));
                assert_eq!(text.contains("#token=abc"), carried.is_some(), "{text}");
            }
        }
    }
}
