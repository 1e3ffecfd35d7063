//! Texts that modules show, including a message for every error code.

use std::fmt::Write as _;

use super::{Lang, errors::ERRORS};

/// A key, its Korean and its English form.
pub(super) type Text = (&'static str, &'static str, &'static str);

/// Declares texts for modules: a key, its Korean and its English form.
macro_rules! texts {
    ($($key:literal = $ko:literal, $en:literal;)*) => {
        &[$(($key, $ko, $en),)*]
    };
}
pub(super) use texts;

const TEXTS: &[Text] = texts! {
    "signed_out" = "로그아웃되었습니다.", "You're signed out.";
    "saved" = "저장되었습니다.", "Saved.";
    "password_changed" = "비밀번호가 변경되었습니다. 다른 기기에서는 로그아웃되었습니다.", "Password changed. You've been signed out on other devices.";
    "second_factor_on" = "2단계 인증이 설정되었습니다.", "Two-step verification is on.";
    "second_factor_off" = "2단계 인증이 해제되었습니다.", "Two-step verification is off.";
    "session_ended" = "로그아웃되었습니다.", "That device is signed out.";
    "unlinked" = "연결이 해제되었습니다.", "Unlinked.";
    "account_closed" = "탈퇴가 완료되었습니다.", "Your account has been deleted.";
    "mail_sent" = "메일을 보냈습니다. 메일함을 확인해 주세요.", "We've sent you an email. Check your inbox.";
    "copied" = "복사되었습니다.", "Copied.";
    "wait" = "{seconds}초 후 다시 시도할 수 있습니다.", "You can try again in {seconds} [second|seconds].";
    "show_password" = "비밀번호 표시", "Show password";
    "hide_password" = "비밀번호 숨기기", "Hide password";
    "field_required" = "필수 입력 항목입니다.", "Required";
    "field_email" = "이메일 주소를 확인해 주세요.", "Enter a valid email address.";
    "invalid_email" = "이메일 주소를 확인해 주세요.", "Enter a valid email address.";
    "invalid_password" = "비밀번호는 8자 이상 128자 이하로 입력해 주세요. 이메일·이름과 같거나 흔히 쓰이는 비밀번호는 사용할 수 없습니다.", "Use 8 to 128 characters. Don't use your name, your email address or a common password.";
    "invalid_name" = "이름은 1자 이상 100자 이하로 입력해 주세요.", "Enter a name of 1 to 100 characters.";
    "invalid_phone" = "휴대폰 번호를 확인해 주세요. 예: 010-1234-5678", "Enter a valid phone number, for example +82 10 1234 5678.";
    "agree_first" = "필수 약관에 동의해 주세요.", "Required";
    "network" = "연결이 끊겼습니다. 인터넷 연결을 확인하고 다시 시도해 주세요.", "You're offline or the connection was interrupted. Check your connection and try again.";
    "other" = "요청을 처리하지 못했습니다. 잠시 후 다시 시도해 주세요.", "Something went wrong. Please try again in a moment.";
    "won" = "{amount}원", "₩{amount}";
    "span_days" = "{days}일 {hours}시간", "{days} [day|days] {hours} [hour|hours]";
    "row" = "{row}열", "Row {row}";
    "section_option" = "{name} · {price} · {free}석", "{name} · {price} · {free} left";
    "seat_area" = "{section}석", "{section}";
    "seat_name" = "{area} {row}열 {number}번", "{area}, row {row}, seat {number}";
    "seat_free" = "{area} {row}열 {number} 번, {price}, 선택 가능", "{area}, row {row}, seat {number}, {price}, available";
    "seat_taken" = "{area} {row}열 {number} 번, {price}, 선택 불가", "{area}, row {row}, seat {number}, {price}, not available";
    "seat_gone" = "{seat}은 다른 사람이 먼저 선택했습니다. 다른 좌석을 선택해 주세요.", "Someone else just took {seat}. Please choose another seat.";
    "seats_enough" = "최대 {most}석까지 선택할 수 있습니다.", "You can choose up to {most} [seat|seats].";
    "seats_count" = "{count}석", "{count} [seat|seats]";
    "hold_over" = "시간이 지나 좌석 선점이 해제되었습니다. 다시 선택해 주세요.", "Time's up. Your seats were released. Please choose again.";
    "queue_tab" = "{position}번째 · {event}", "No. {position} · {event}";
    "people" = "{count}명", "{count}";
    "queue_announce" = "현재 {position}번째입니다. 예상 대기 시간: {wait}.", "You are number {position} in line. Estimated wait: {wait}.";
    "queue_announce_early" = "현재 {position}번째입니다. 예매 시작까지 {wait} 남았습니다.", "You are number {position} in line. The sale opens in {wait}.";
    "queue_offline" = "연결이 끊겼습니다. 순서는 그대로 유지되며, 연결되면 자동으로 이어집니다.", "You're offline. You keep your place, and we'll reconnect automatically.";
    "queue_keeps" = "순서는 그대로 유지되며 자동으로 다시 시도합니다.", "You keep your place. We'll try again automatically.";
    "queue_tries" = "아직 대기열에 입장하지 못했습니다. 자동으로 다시 시도합니다.", "You're not in line yet. We'll try again automatically.";
    "queue_rejoined" = "이전 대기 순서를 찾을 수 없어 새로 대기열에 입장했습니다.", "Your earlier place could not be found, so you joined the line again.";
    "queue_no_event" = "공연을 찾을 수 없습니다.", "We can't find this event.";
    "entry_waiting" = "대기 중", "Waiting";
    "entry_active" = "예매 중", "Choosing seats";
    "entry_leave" = "대기 취소", "Leave";
    "entry_unknown" = "알 수 없는 공연", "Unknown event";
    "map_old" = "좌석 현황을 새로 불러오지 못하고 있습니다. 잠시 전 상태가 표시됩니다.", "We can't update the seating plan right now. You're seeing a slightly older version.";
    "turn_over" = "예매 가능 시간이 끝났습니다. 좌석을 선택하려면 다시 대기해 주세요.", "Your time to choose seats is over. Please wait in line again.";
    "room_line" = "대기 {waiting}명 · 초당 {rate}명 입장", "{waiting} waiting · {rate} admitted per second";
    "done" = "적용되었습니다.", "Done.";
    "title_differs" = "공연 이름이 일치하지 않습니다. 위에 표시된 대로 입력해 주세요.", "That doesn't match. Type the title exactly as shown above.";
    "live" = "실시간", "Live";
    "not_live" = "실시간이 아닙니다. 마지막 데이터", "Not live. Last update";
    "polling" = "실시간 연결 없이 2초마다 갱신합니다", "No live connection. Updated every 2 seconds";
    "now_set" = "현재 {now}", "Now {now}";
    "will_set" = "현재 {now} → {next}", "Now {now} → {next}";
    "let_in" = "{number}명을 입장시켰습니다.", "{number} [person|people] admitted.";
    "chart_said" = "{label}: 현재 {now}, 최근 {minutes}분 최고 {most}", "{label}: now {now}, highest in the last {minutes} min {most}";
    "state_open" = "입장 중", "Admitting";
    "state_open_text" = "순서대로 입장하고 있습니다.", "People are getting in, in order.";
    "state_free" = "여유", "No line";
    "state_free_text" = "대기 없이 바로 입장합니다.", "New visitors get straight in.";
    "state_full" = "가득 참", "Full";
    "state_full_text" = "자리가 나는 대로 순서대로 입장합니다.", "People get in, in order, as slots become free.";
    "state_paused" = "일시 중지", "Paused";
    "state_paused_text" = "입장이 중지되었습니다. 대기 순서는 유지됩니다.", "Entry is paused. Everyone keeps their place.";
    "state_shut" = "닫힘", "Closed";
    "state_shut_text" = "0명으로 설정되어 있어 입장할 수 없습니다.", "Set to zero: no one gets in.";
    "state_off" = "꺼짐", "Off";
    "state_off_text" = "대기 없이 통과합니다.", "Visitors don't wait here.";
    "state_away" = "응답 없음", "Not responding";
    "state_away_text" = "저장소가 응답하지 않아 입장이 중지되었습니다. 대기 순서는 유지됩니다.", "The store isn't responding, so entry has stopped. Everyone keeps their place.";
    "state_none" = "없음", "None";
    "state_none_text" = "이 서버에는 설치되어 있지 않습니다.", "Not installed on this server.";
    "deed_queue" = "공연", "Event";
    "deed_vwr" = "사이트", "Site";
    "deed_threshold" = "동시 입장 한도를 {number}명으로 변경", "Changed the maximum inside to {number}";
    "deed_rate" = "초당 입장 인원을 {number}명으로 변경", "Changed the rate to {number} per second";
    "deed_pause" = "입장 일시 중지", "Paused entry";
    "deed_resume" = "입장 재개", "Resumed entry";
    "deed_clear" = "대기열을 비움", "Cleared the line";
    "deed_activate" = "사이트 대기실을 켬", "Turned the site waiting room on";
    "deed_deactivate" = "사이트 대기실을 끔", "Turned the site waiting room off";
    "deed_advance" = "{number}명까지 추가 입장", "Admitted up to {number} more";
    "deed_asked" = "{deed} (요청했으나 적용되지 않음)", "{deed} (requested, not applied)";
    "by_you" = "나", "you";
    "by_other" = "다른 운영자", "another administrator";
    "by_system" = "시스템", "system";
    "wait_paused" = "입장 일시 중지", "Entry is paused";
    "wait_soon" = "1분 이내", "Less than a minute";
    "wait_about" = "약 {time}", "About {time}";
    "wait_range" = "약 {least}~{most}", "{least} to {most}";
    "time_minutes" = "{minutes}분", "{minutes} min";
    "time_hours" = "{hours}시간", "{hours} [hour|hours]";
    "time_hours_half" = "{hours}시간 30분", "{hours} h 30 min";
    "time_days" = "{days}일", "{days} [day|days]";
};

/// All texts of the modules. A key with a dot is an error code.
pub(super) fn all() -> impl Iterator<Item = &'static Text> {
    TEXTS.iter().chain(ERRORS)
}

/// The message for an error code, or a general one for an unknown code.
pub(crate) fn error(lang: Lang, code: &str) -> &'static str {
    let (_, ko, en) = ERRORS
        .iter()
        .find(|(key, ..)| *key == code)
        .or_else(|| TEXTS.iter().find(|(key, ..)| *key == "other"))
        .expect("`other` is declared");
    lang.pick(ko, en)
}

/// The JavaScript module with the texts of one language.
pub(crate) fn script(lang: Lang) -> String {
    let mut module = String::from("export default {\n");
    for (key, ko, en) in all() {
        let quoted = |text: &str| serde_json::to_string(text).expect("a string serialises to JSON");
        writeln!(module, "{}: {},", quoted(key), quoted(lang.pick(ko, en)))
            .expect("writing to a String cannot fail");
    }
    module.push_str("};\n");
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_gets_the_general_message() {
        assert_eq!(error(Lang::En, "auth.busy"), "Many people are signing in. Please try again in a moment.");
        assert_eq!(error(Lang::En, "x.y"), error(Lang::En, "other"));
        assert_eq!(
            error(Lang::Ko, "saved"),
            error(Lang::Ko, "other"),
            "a key without a dot is not an error code"
        );
    }
}
