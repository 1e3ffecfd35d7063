//! Texts of the mails, in Korean and English.

use urr_contracts::auth::{Account, Sensitive};
use urr_mail::{Template, Text, Words};

use super::Kind;

/// Renders subject and text of a mail. The token is in the fragment (`#…`), which browsers do not
/// send to servers, so it appears in no log and no `Referer`.
pub(super) fn render(kind: Kind, account: &Account, site_url: &str, carried: Option<&Sensitive>) -> Text {
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
    // Until the address is verified, the name may have been entered by another person.
    let name = Some(account.name.as_str()).filter(|_| account.email_verified);
    template(kind).render(account.language, name, &[("link", &link)])
}

const fn template(kind: Kind) -> Template {
    match kind {
        Kind::VerifyEmail => VERIFY_EMAIL,
        Kind::ResetPassword => RESET_PASSWORD,
        Kind::AlreadyRegistered => ALREADY_REGISTERED,
        Kind::PasswordChanged => PASSWORD_CHANGED,
        Kind::SessionStolen => SESSION_STOLEN,
        Kind::SecondFactorChanged => SECOND_FACTOR_CHANGED,
        Kind::SignInChanged => SIGN_IN_CHANGED,
    }
}

const VERIFY_EMAIL: Template = Template {
    ko: Words {
        subject: "[우르르] 이메일 주소를 확인해 주세요",
        body: "아래 링크를 눌러 이메일 주소를 확인해 주세요. 링크는 24시간 동안 한 번만 쓸 수 있습니다.\n\n{link}\n\n\
             가입한 적이 없다면 이 메일을 무시하셔도 됩니다.",
    },
    en: Words {
        subject: "[URR] Please confirm your e-mail address",
        body: "Follow this link to confirm your e-mail address. It works once, for 24 hours.\n\n{link}\n\n\
             If you did not sign up, you can ignore this mail.",
    },
};

const RESET_PASSWORD: Template = Template {
    ko: Words {
        subject: "[우르르] 비밀번호 재설정",
        body: "아래 링크에서 새 비밀번호를 정할 수 있습니다. 링크는 30분 동안 한 번만 쓸 수 있습니다.\n\n{link}\n\n\
             요청한 적이 없다면 이 메일을 무시하셔도 됩니다. 비밀번호는 그대로입니다.",
    },
    en: Words {
        subject: "[URR] Set a new password",
        body: "Follow this link to set a new password. It works once, for 30 minutes.\n\n{link}\n\n\
             If you did not ask for it, you can ignore this mail. Your password stays as it is.",
    },
};

const ALREADY_REGISTERED: Template = Template {
    ko: Words {
        subject: "[우르르] 이미 가입된 이메일 주소입니다",
        body: "누군가 이 이메일 주소로 회원 가입을 시도했지만, 이미 계정이 있어 새로 만들지 않았습니다.\n\
             본인이라면 아래에서 로그인하거나 비밀번호를 재설정해 주세요.\n\n{link}",
    },
    en: Words {
        subject: "[URR] You already have an account",
        body: "A sign-up used this e-mail address. It already has an account, so no new one was created.\n\
             If it was you, sign in or set a new password.\n\n{link}",
    },
};

const PASSWORD_CHANGED: Template = Template {
    ko: Words {
        subject: "[우르르] 비밀번호가 변경되었습니다",
        body: "비밀번호가 변경되어 모든 기기에서 로그아웃되었습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정해 주세요.\n\n{link}",
    },
    en: Words {
        subject: "[URR] Your password was changed",
        body: "Your password was changed, and you were signed out on all devices.\n\
             If it was not you, set a new password right away.\n\n{link}",
    },
};

const SESSION_STOLEN: Template = Template {
    ko: Words {
        subject: "[우르르] 보안을 위해 로그아웃되었습니다",
        body: "같은 로그인 정보가 두 곳에서 쓰여 해당 로그인을 종료했습니다.\n\
             짐작 가는 일이 없다면 비밀번호를 재설정해 주세요.\n\n{link}",
    },
    en: Words {
        subject: "[URR] You were signed out for your safety",
        body: "The same sign-in was used in two places, so we ended it.\n\
             If you do not know why, set a new password.\n\n{link}",
    },
};

const SECOND_FACTOR_CHANGED: Template = Template {
    ko: Words {
        subject: "[우르르] 2단계 인증 설정이 변경되었습니다",
        body: "2단계 인증이 켜지거나 꺼졌거나, 복구 코드가 새로 만들어졌습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정하고 운영자에게 알려 주세요.\n\n{link}",
    },
    en: Words {
        subject: "[URR] Your second factor was changed",
        body: "Two-step verification was turned on or off, or new recovery codes were created.\n\
             If it was not you, set a new password right away and contact support.\n\n{link}",
    },
};

const SIGN_IN_CHANGED: Template = Template {
    ko: Words {
        subject: "[우르르] 로그인 방법이 변경되었습니다",
        body: "다른 서비스의 계정이 내 계정에 연결되었거나 연결이 해제되었습니다.\n\
             본인이 변경하지 않았다면 바로 비밀번호를 재설정하고 연결된 계정을 확인해 주세요.\n\n{link}",
    },
    en: Words {
        subject: "[URR] How you sign in was changed",
        body: "An account of another service was linked to your account, or unlinked from it.\n\
             If it was not you, set a new password right away and check your linked accounts.\n\n{link}",
    },
};

#[cfg(test)]
mod tests {
    use urr_contracts::auth::{AccountStatus, Language};
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
    fn every_mail_has_its_link_and_greets_verified_owners_by_name_in_both_languages() {
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
                assert_eq!(template(kind).placeholders(language), ["link"]);
                let Text { subject, text } = render(kind, &account, "https://urr.example", carried.as_ref());
                assert!(text.contains("https://urr.example/"), "{text}");
                assert_eq!(text.contains("김민지"), email_verified, "{text}");
                assert!(!text.contains("{link}") && !subject.contains('\n'));
                assert_eq!(text.contains("#token=abc"), carried.is_some(), "{text}");
            }
        }
    }
}
