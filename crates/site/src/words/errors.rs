//! A sentence for every error that somebody can meet on a page.

use super::script::{Text, texts};

pub(super) const ERRORS: &[Text] = texts! {
    "auth.invalid" = "입력한 내용을 확인해 주세요.", "Please check what you entered.";
    "auth.terms_required" = "필수 약관에 동의해 주세요.", "Please agree to what is required.";
    "auth.already_registered" = "이미 가입된 이메일입니다. 로그인하거나 비밀번호를 재설정해 주세요.", "An account with this email already exists. Sign in or reset your password.";
    "auth.invalid_credentials" = "이메일 또는 비밀번호가 맞지 않습니다.", "The e-mail address or the password is wrong.";
    "auth.wrong_password" = "현재 비밀번호가 맞지 않습니다.", "The current password is wrong.";
    "auth.wrong_code" = "코드가 맞지 않거나 이미 쓴 코드입니다. 앱에 보이는 새 숫자를 입력해 주세요.", "The code is wrong or was used before. Please enter the digits the app shows now.";
    "auth.challenge_invalid" = "로그인이 너무 오래 걸렸습니다. 처음부터 다시 해 주세요.", "This sign-in took too long. Please start again.";
    "auth.too_many_attempts" = "여러 번 틀려서 잠시 잠겼습니다.", "Locked for a while after too many attempts.";
    "auth.busy" = "지금 로그인하는 사람이 많습니다. 잠시 뒤 다시 시도해 주세요.", "Many people are signing in. Please try again in a moment.";
    "auth.unavailable" = "지금은 로그인할 수 없습니다. 잠시 뒤 다시 시도해 주세요.", "Signing in is not possible right now. Please try again in a moment.";
    "auth.required" = "먼저 로그인해 주세요.", "Please sign in first.";
    "auth.link_invalid" = "이 링크는 이미 쓰였거나 기한이 지났습니다. 새 링크를 받아 주세요.", "This link was used or is too old. Please ask for a new one.";
    "auth.proof_required" = "이 기기에서는 로그인되어 있지 않습니다. 계정의 비밀번호를 입력해 주세요.", "You are not signed in on this device. Please enter the password of the account.";
    "auth.sign_in_again" = "보안을 위해 다시 로그인한 뒤 시도해 주세요.", "For your safety, please sign in again and then try once more.";
    "auth.second_factor_on" = "2단계 인증이 이미 켜져 있습니다.", "The second factor is on already.";
    "auth.second_factor_off" = "2단계 인증이 꺼져 있습니다.", "The second factor is off.";
    "auth.last_admin" = "마지막 운영자 계정은 삭제할 수 없습니다.", "The last administrator cannot be removed.";
    "auth.last_way_in" = "마지막 로그인 방법은 끊을 수 없습니다. 먼저 비밀번호를 정해 주세요.", "The last way to sign in cannot be removed. Please set a password first.";
    "auth.link_taken" = "다른 회원에게 연결된 계정입니다.", "That account is linked to another user.";
    "auth.already_linked" = "같은 서비스의 다른 계정이 이미 연결되어 있습니다. 먼저 연결을 끊어 주세요.", "Another account of that service is linked already. Please unlink it first.";
    "auth.link_required" = "같은 이메일로 만든 계정이 이미 있습니다. 비밀번호로 로그인한 뒤 내 계정에서 연결해 주세요.", "There is already an account with that address. Sign in with its password and link the other one under My account.";
    "auth.email_unverified" = "그 서비스에서 이메일이 확인되지 않았습니다. 먼저 확인하거나 비밀번호로 가입해 주세요.", "The address is not verified there. Please verify it first, or register with a password.";
    "auth.trip_invalid" = "로그인이 만료되었습니다. 처음부터 다시 해 주세요.", "This sign-in is no longer valid. Please start again.";
    "auth.trip_refused" = "로그인을 취소했습니다.", "The sign-in was cancelled.";
    "auth.provider_off" = "이 사이트에서는 쓸 수 없는 로그인 방법입니다.", "Signing in this way is not offered here.";
    "auth.provider_unavailable" = "그 서비스가 응답하지 않습니다. 잠시 뒤 다시 시도해 주세요.", "That service does not answer right now. Please try again in a moment.";
    "auth.sign_up_invalid" = "가입 시간이 지났습니다. 처음부터 다시 해 주세요.", "This registration is no longer valid. Please start again.";
    "auth.session_not_found" = "이미 끝난 세션입니다.", "That session has ended already.";
    "queue.line_full" = "대기실이 가득 찼습니다.", "The waiting room is full.";
    "queue.pass_taken" = "다른 계정이 이 브라우저의 차례를 이미 사용했습니다. 그 계정으로 로그인하시거나, 잠시 후 이 계정으로 다시 줄을 서게 됩니다.", "Another account has used this browser's turn. Sign in to that account, or wait a moment: this one then waits in line once more.";
    "queue.place_over" = "이 줄의 자리가 끝났습니다. 다시 줄을 서 주세요.", "Your place in this line is over. Please wait in line once more.";
    "queue.too_many_lines" = "이미 여러 공연의 줄에 서 있습니다. 한 곳에서 나온 뒤 다시 시도해 주세요.", "You stand in several lines already. Please leave one of them first.";
    "queue.sale_ended" = "예매가 끝났습니다.", "The sale is over.";
    "queue.event_cancelled" = "취소된 공연입니다.", "This event was called off.";
    "queue.bad_threshold" = "설정할 수 없는 한도입니다.", "The threshold cannot be set to that.";
    "queue.unavailable" = "대기실이 잠시 응답하지 않습니다.", "The waiting room does not answer for a moment.";
    "vwr.bad_rate" = "설정할 수 없는 속도입니다.", "The rate cannot be set to that.";
    "vwr.bad_batch" = "들여보낼 수 없는 인원입니다.", "That many cannot be let in.";
    "vwr.not_active" = "사이트 앞 대기실이 꺼져 있습니다.", "The room in front of everything is off.";
    "vwr.unavailable" = "대기실이 잠시 응답하지 않습니다.", "The waiting room does not answer for a moment.";
    "auth.admin_required" = "운영자만 할 수 있습니다.", "Only an administrator may do this.";
    "auth.second_factor_required" = "운영자는 먼저 2단계 인증을 켜야 합니다.", "Administrators need to turn on a second factor first.";
    "gateway.unavailable" = "서비스가 잠시 응답하지 않습니다. 곧 다시 시도해 주세요.", "The service does not answer for a moment. Please try again soon.";
    "gateway.cross_origin" = "이 주소에서는 보낼 수 없는 요청입니다. 주소창의 주소를 확인해 주세요.", "This cannot be sent from this address. Please check what the address bar says.";
    "limit.exceeded" = "요청이 너무 많습니다.", "Too many requests.";
    "limit.unavailable" = "잠시 처리할 수 없습니다. 곧 다시 시도해 주세요.", "This is not possible for a moment. Please try again shortly.";
    "http.timeout" = "응답이 너무 오래 걸렸습니다. 다시 시도해 주세요.", "The answer took too long. Please try again.";
    "http.overloaded" = "지금은 요청이 너무 많습니다. 잠시 뒤 다시 시도해 주세요.", "There are too many requests right now. Please try again in a moment.";
    "tickets.seats_taken" = "방금 다른 사람이 잡은 좌석이 있습니다. 다른 좌석을 골라 주세요.", "Somebody else has just taken one of these seats. Please choose others.";
    "tickets.user_limit" = "이 공연에서 잡을 수 있는 좌석 수를 넘었습니다.", "You hold as many seats of this event as one person may.";
    "tickets.too_many_seats" = "한 번에 잡을 수 있는 좌석 수를 넘었습니다.", "That is more seats than one can hold at a time.";
    "tickets.sale_not_open" = "아직 예매가 시작되지 않았습니다.", "The sale has not opened yet.";
    "tickets.sale_ended" = "예매가 끝났습니다.", "The sale is over.";
    "tickets.event_cancelled" = "취소된 공연입니다.", "This event was called off.";
    "tickets.not_pending" = "이미 처리된 예약입니다.", "This reservation has moved on already.";
    "tickets.unavailable" = "지금은 좌석을 확인할 수 없습니다. 잠시 뒤 다시 시도해 주세요.", "Seats are not available right now. Please try again in a moment.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_of_them_has_a_page_in_the_docs() {
        let pages = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors"));
        for (code, ..) in ERRORS {
            assert!(pages.join(format!("{code}.md")).exists(), "{code} is no error of ours");
        }
    }
}
