//! A message for every error code that a page can show.

use super::script::{Text, texts};

pub(super) const ERRORS: &[Text] = texts! {
    "auth.invalid" = "입력한 내용을 확인해 주세요.", "Please check your entry.";
    "auth.terms_required" = "필수 약관에 동의해 주세요.", "Please agree to the required terms.";
    "auth.already_registered" = "이미 가입된 이메일입니다. 로그인하거나 비밀번호를 재설정해 주세요.", "An account with this email already exists. Sign in or reset your password.";
    "auth.invalid_credentials" = "이메일 또는 비밀번호가 올바르지 않습니다.", "Wrong email address or password.";
    "auth.wrong_password" = "현재 비밀번호가 올바르지 않습니다.", "Your current password is wrong.";
    "auth.wrong_code" = "코드가 올바르지 않거나 이미 사용되었습니다. 앱에 표시된 새 숫자를 입력해 주세요.", "That code is wrong or was already used. Enter the code your app shows now.";
    "auth.challenge_invalid" = "로그인 시간이 초과되었습니다. 처음부터 다시 진행해 주세요.", "Your sign-in timed out. Please start over.";
    "auth.too_many_attempts" = "여러 번 잘못 입력하여 잠시 잠겼습니다.", "Too many attempts. Signing in is locked for a moment.";
    "auth.busy" = "로그인하는 사람이 많습니다. 잠시 후 다시 시도해 주세요.", "Many people are signing in. Please try again in a moment.";
    "auth.required" = "로그인이 필요합니다.", "Please sign in first.";
    "auth.link_invalid" = "이미 사용했거나 만료된 링크입니다. 새 링크를 받아 주세요.", "This link was already used or has expired. Please request a new one.";
    "auth.proof_required" = "이 기기에서 로그인되어 있지 않습니다. 비밀번호를 입력해 주세요.", "You're not signed in on this device. Please enter your password.";
    "auth.sign_in_again" = "보안을 위해 다시 로그인한 뒤 시도해 주세요.", "For your security, sign in again and then try once more.";
    "auth.second_factor_on" = "2단계 인증을 이미 사용하고 있습니다.", "Two-step verification is already on.";
    "auth.second_factor_off" = "2단계 인증을 사용하고 있지 않습니다.", "Two-step verification is off.";
    "auth.last_admin" = "마지막 운영자 계정은 탈퇴할 수 없습니다.", "The last administrator can't be removed.";
    "auth.last_way_in" = "마지막 로그인 방법은 해제할 수 없습니다. 먼저 비밀번호를 설정해 주세요.", "You can't remove your only way to sign in. Set a password first.";
    "auth.link_taken" = "다른 회원에게 연결된 계정입니다.", "That account is linked to another user.";
    "auth.already_linked" = "같은 서비스의 다른 계정이 연결되어 있습니다. 먼저 연결을 해제해 주세요.", "Another account of that service is already linked. Unlink it first.";
    "auth.link_required" = "같은 이메일로 가입된 계정이 있습니다. 비밀번호로 로그인한 뒤 마이페이지에서 연결해 주세요.", "There is already an account with this email address. Sign in with your password and link the other account under My account.";
    "auth.email_unverified" = "해당 서비스에서 인증되지 않은 이메일입니다. 먼저 인증하거나 비밀번호로 가입해 주세요.", "Your email address isn't verified with that service. Verify it there first, or create an account with a password.";
    "auth.trip_invalid" = "로그인이 만료되었습니다. 처음부터 다시 진행해 주세요.", "Your sign-in has expired. Please start over.";
    "auth.trip_refused" = "로그인이 취소되었습니다.", "Sign-in was cancelled.";
    "auth.provider_off" = "사용할 수 없는 로그인 방법입니다.", "This way of signing in isn't available.";
    "auth.provider_unavailable" = "해당 서비스가 응답하지 않습니다. 잠시 후 다시 시도해 주세요.", "That service isn't responding. Please try again in a moment.";
    "auth.sign_up_invalid" = "가입 시간이 초과되었습니다. 처음부터 다시 진행해 주세요.", "Your registration has expired. Please start over.";
    "auth.session_not_found" = "이미 로그아웃된 기기입니다.", "That device is already signed out.";
    "queue.line_full" = "대기실이 가득 찼습니다.", "The waiting room is full.";
    "queue.pass_taken" = "다른 계정이 이 브라우저의 차례를 사용했습니다. 그 계정으로 로그인하거나, 잠시 후 이 계정으로 다시 대기해 주세요.", "Another account has used this browser's turn. Sign in with that account, or wait in line again with this one in a moment.";
    "queue.place_over" = "대기 순서가 만료되었습니다. 다시 대기해 주세요.", "Your place in line has expired. Please wait in line again.";
    "queue.too_many_lines" = "동시에 대기할 수 있는 공연 수를 초과했습니다.", "You're already in as many waiting rooms as allowed.";
    "queue.sale_ended" = "예매가 종료되었습니다.", "This sale has ended.";
    "queue.event_cancelled" = "취소된 공연입니다.", "This event has been cancelled.";
    "queue.bad_threshold" = "설정할 수 없는 한도입니다.", "That limit isn't allowed.";
    "vwr.bad_rate" = "설정할 수 없는 속도입니다.", "That rate isn't allowed.";
    "vwr.bad_batch" = "입장시킬 수 없는 인원입니다.", "That number isn't allowed.";
    "vwr.not_active" = "사이트 대기실이 꺼져 있습니다.", "The site waiting room is off.";
    "auth.admin_required" = "운영자만 사용할 수 있습니다.", "Only administrators can do this.";
    "auth.second_factor_required" = "먼저 2단계 인증을 설정해 주세요.", "Turn on two-step verification first.";
    "http.unavailable" = "서비스가 잠시 응답하지 않습니다. 잠시 후 다시 시도해 주세요.", "The service isn't responding. Please try again in a moment.";
    "gateway.cross_origin" = "이 주소에서 보낼 수 없는 요청입니다. 주소창의 주소를 확인해 주세요.", "This request can't be sent from this address. Please check the address bar.";
    "limit.exceeded" = "요청이 너무 많습니다.", "Too many requests.";
    "limit.unavailable" = "지금은 처리할 수 없습니다. 잠시 후 다시 시도해 주세요.", "This isn't possible right now. Please try again in a moment.";
    "http.timeout" = "응답 시간이 초과되었습니다. 다시 시도해 주세요.", "The request timed out. Please try again.";
    "http.overloaded" = "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.", "We're very busy right now. Please try again in a moment.";
    "tickets.seats_taken" = "다른 사람이 먼저 선택한 좌석이 있습니다. 다른 좌석을 선택해 주세요.", "Someone else just took one of these seats. Please choose different seats.";
    "tickets.user_limit" = "이 공연의 1인 구매 한도를 초과했습니다.", "You've reached the ticket limit for this event.";
    "tickets.too_many_seats" = "한 번에 선택할 수 있는 좌석 수를 초과했습니다.", "You can't hold that many seats at once.";
    "tickets.sale_not_open" = "아직 예매가 시작되지 않았습니다.", "The sale hasn't opened yet.";
    "tickets.sale_ended" = "예매가 종료되었습니다.", "This sale has ended.";
    "tickets.event_cancelled" = "취소된 공연입니다.", "This event has been cancelled.";
    "tickets.not_pending" = "이미 처리된 예약입니다.", "This reservation can no longer be changed.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_in_the_docs() {
        let pages = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors"));
        for (code, ..) in ERRORS {
            assert!(pages.join(format!("{code}.md")).exists(), "{code} is not a documented error code");
        }
    }
}
