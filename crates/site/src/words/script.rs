//! Texts that modules put on pages, among them a sentence for every error that somebody can meet there.

use std::fmt::Write as _;

use super::Lang;

/// Key, Korean, English. A key with a dot is the code of an error.
pub(super) const ALL: &[(&str, &str, &str)] = &[
    ("signed_out", "로그아웃했습니다.", "You are signed out."),
    ("saved", "저장했습니다.", "Saved."),
    ("password_changed", "비밀번호를 바꿨습니다. 다른 기기에서는 로그아웃되었습니다.", "Your password is changed. Other devices are signed out."),
    ("second_factor_on", "2단계 인증을 켰습니다.", "The second factor is on."),
    ("second_factor_off", "2단계 인증을 껐습니다.", "The second factor is off."),
    ("session_ended", "세션을 끝냈습니다.", "The session has ended."),
    ("unlinked", "연결을 끊었습니다.", "Unlinked."),
    ("account_closed", "계정을 삭제했습니다.", "Your account is deleted."),
    ("mail_sent", "메일을 보냈습니다. 메일함을 확인해 주세요.", "A mail is on its way. Look into your mailbox."),
    ("copied", "복사했습니다.", "Copied."),
    ("wait", "{seconds}초 뒤에 다시 시도할 수 있습니다.", "You can try again in {seconds} seconds."),
    ("field_required", "꼭 필요한 항목입니다.", "This is needed."),
    ("field_email", "이메일 주소를 확인해 주세요.", "Please check the e-mail address."),
    ("invalid_email", "이메일 주소를 확인해 주세요.", "Please check the e-mail address."),
    (
        "invalid_password",
        "비밀번호는 8자 이상 128자 이하여야 하고, 이메일·이름과 같거나 너무 흔한 것은 쓸 수 없습니다.",
        "Use 8 to 128 characters, and not your name, your address or one that everybody uses.",
    ),
    ("invalid_name", "이름은 1자 이상 100자 이하로 적어 주세요.", "A name has 1 to 100 characters."),
    ("invalid_phone", "전화번호를 확인해 주세요. 예: 010-1234-5678", "Please check the phone number, such as +82 10 1234 5678."),
    ("agree_first", "필수 약관에 동의해 주세요.", "Please agree to what is required."),
    ("network", "연결이 끊겼습니다. 인터넷 연결을 확인하고 다시 시도해 주세요.", "There is no connection. Please check it and try again."),
    ("other", "처리하지 못했습니다. 잠시 뒤 다시 시도해 주세요.", "That did not work. Please try again in a moment."),
    ("auth.invalid", "입력한 내용을 확인해 주세요.", "Please check what you entered."),
    ("auth.terms_required", "필수 약관에 동의해 주세요.", "Please agree to what is required."),
    (
        "auth.registration_failed",
        "가입하지 못했습니다. 이미 계정이 있다면 로그인하거나 비밀번호를 재설정해 주세요.",
        "The account could not be made. If you have one already, sign in or set a new password.",
    ),
    ("auth.invalid_credentials", "이메일 또는 비밀번호가 맞지 않습니다.", "The e-mail address or the password is wrong."),
    ("auth.wrong_password", "현재 비밀번호가 맞지 않습니다.", "The current password is wrong."),
    ("auth.wrong_code", "코드가 맞지 않거나 이미 쓴 코드입니다. 앱에 보이는 새 숫자를 입력해 주세요.", "The code is wrong or was used before. Please enter the digits the app shows now."),
    ("auth.challenge_invalid", "로그인이 너무 오래 걸렸습니다. 처음부터 다시 해 주세요.", "This sign-in took too long. Please start again."),
    ("auth.too_many_attempts", "여러 번 틀려서 잠시 잠겼습니다.", "Locked for a while after too many attempts."),
    ("auth.busy", "지금 로그인하는 사람이 많습니다. 잠시 뒤 다시 시도해 주세요.", "Many people are signing in. Please try again in a moment."),
    ("auth.unavailable", "지금은 로그인할 수 없습니다. 잠시 뒤 다시 시도해 주세요.", "Signing in is not possible right now. Please try again in a moment."),
    ("auth.required", "먼저 로그인해 주세요.", "Please sign in first."),
    ("auth.link_invalid", "이 링크는 이미 쓰였거나 기한이 지났습니다. 새 링크를 받아 주세요.", "This link was used or is too old. Please ask for a new one."),
    ("auth.sign_in_again", "보안을 위해 다시 로그인한 뒤 시도해 주세요.", "For your safety, please sign in again and then try once more."),
    ("auth.second_factor_on", "2단계 인증이 이미 켜져 있습니다.", "The second factor is on already."),
    ("auth.second_factor_off", "2단계 인증이 꺼져 있습니다.", "The second factor is off."),
    ("auth.last_admin", "마지막 운영자 계정은 삭제할 수 없습니다.", "The last administrator cannot be removed."),
    ("auth.last_way_in", "마지막 로그인 방법은 끊을 수 없습니다. 먼저 비밀번호를 정해 주세요.", "The last way to sign in cannot be removed. Please set a password first."),
    ("auth.link_taken", "다른 회원에게 연결된 계정입니다.", "That account is linked to another user."),
    ("auth.already_linked", "같은 서비스의 다른 계정이 이미 연결되어 있습니다. 먼저 연결을 끊어 주세요.", "Another account of that service is linked already. Please unlink it first."),
    ("auth.link_required", "같은 이메일로 만든 계정이 이미 있습니다. 비밀번호로 로그인한 뒤 내 계정에서 연결해 주세요.", "There is already an account with that address. Sign in with its password and link the other one under My account."),
    ("auth.email_unverified", "그 서비스에서 이메일이 확인되지 않았습니다. 먼저 확인하거나 비밀번호로 가입해 주세요.", "The address is not verified there. Please verify it first, or register with a password."),
    ("auth.trip_invalid", "로그인이 만료되었습니다. 처음부터 다시 해 주세요.", "This sign-in is no longer valid. Please start again."),
    ("auth.trip_refused", "로그인을 취소했습니다.", "The sign-in was cancelled."),
    ("auth.provider_off", "이 사이트에서는 쓸 수 없는 로그인 방법입니다.", "Signing in this way is not offered here."),
    ("auth.provider_unavailable", "그 서비스가 응답하지 않습니다. 잠시 뒤 다시 시도해 주세요.", "That service does not answer right now. Please try again in a moment."),
    ("auth.sign_up_invalid", "가입 시간이 지났습니다. 처음부터 다시 해 주세요.", "This registration is no longer valid. Please start again."),
    ("auth.session_not_found", "이미 끝난 세션입니다.", "That session has ended already."),
    ("gateway.unavailable", "서비스가 잠시 응답하지 않습니다. 곧 다시 시도해 주세요.", "The service does not answer for a moment. Please try again soon."),
    ("gateway.cross_origin", "이 주소에서는 보낼 수 없는 요청입니다. 주소창의 주소를 확인해 주세요.", "This cannot be sent from this address. Please check what the address bar says."),
    ("limit.exceeded", "요청이 너무 많습니다.", "Too many requests."),
    ("limit.unavailable", "잠시 처리할 수 없습니다. 곧 다시 시도해 주세요.", "This is not possible for a moment. Please try again shortly."),
    ("http.timeout", "응답이 너무 오래 걸렸습니다. 다시 시도해 주세요.", "The answer took too long. Please try again."),
    ("http.overloaded", "지금은 요청이 너무 많습니다. 잠시 뒤 다시 시도해 주세요.", "There are too many requests right now. Please try again in a moment."),
];

/// The sentence for an error. What is not listed gets the one for everything else.
pub(crate) fn error(lang: Lang, code: &str) -> &'static str {
    let is = |wanted: &str| ALL.iter().find(|(key, ..)| *key == wanted && (wanted == "other" || key.contains('.')));
    let (_, ko, en) = is(code).or_else(|| is("other")).expect("there is a sentence for everything else");
    lang.pick(ko, en)
}

/// The module that hands the texts of one language to the others.
pub(crate) fn script(lang: Lang) -> String {
    let mut module = String::from("export default {\n");
    for (key, ko, en) in ALL {
        let text = lang.pick(ko, en);
        let quoted = |text: &str| serde_json::to_string(text).expect("a text is JSON");
        writeln!(module, "{}: {},", quoted(key), quoted(text)).expect("a String takes everything");
    }
    module.push_str("};\n");
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_among_them_has_a_page_in_the_docs() {
        let pages = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors"));
        for (code, ..) in ALL.iter().filter(|(key, ..)| key.contains('.')) {
            assert!(pages.join(format!("{code}.md")).exists(), "{code} is no error of ours");
        }
    }

    #[test]
    fn what_is_not_listed_gets_a_sentence_too() {
        assert_eq!(error(Lang::En, "auth.busy"), "Many people are signing in. Please try again in a moment.");
        assert_eq!(error(Lang::En, "x.y"), error(Lang::En, "other"));
        assert_eq!(error(Lang::Ko, "saved"), error(Lang::Ko, "other"), "only errors are errors");
    }
}
