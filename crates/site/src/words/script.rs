//! Texts that modules put on pages, among them a sentence for every error that somebody can meet there.

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
    "signed_out" = "로그아웃했습니다.", "You are signed out.";
    "saved" = "저장했습니다.", "Saved.";
    "password_changed" = "비밀번호를 바꿨습니다. 다른 기기에서는 로그아웃되었습니다.", "Your password is changed. Other devices are signed out.";
    "second_factor_on" = "2단계 인증을 켰습니다.", "The second factor is on.";
    "second_factor_off" = "2단계 인증을 껐습니다.", "The second factor is off.";
    "session_ended" = "세션을 끝냈습니다.", "The session has ended.";
    "unlinked" = "연결을 끊었습니다.", "Unlinked.";
    "account_closed" = "계정을 삭제했습니다.", "Your account is deleted.";
    "mail_sent" = "메일을 보냈습니다. 메일함을 확인해 주세요.", "A mail is on its way. Look into your mailbox.";
    "copied" = "복사했습니다.", "Copied.";
    "wait" = "{seconds}초 뒤에 다시 시도할 수 있습니다.", "You can try again in {seconds} s.";
    "field_required" = "꼭 필요한 항목입니다.", "This is needed.";
    "field_email" = "이메일 주소를 확인해 주세요.", "Please check the e-mail address.";
    "invalid_email" = "이메일 주소를 확인해 주세요.", "Please check the e-mail address.";
    "invalid_password" = "비밀번호는 8자 이상 128자 이하여야 하고, 이메일·이름과 같거나 너무 흔한 것은 쓸 수 없습니다.", "Use 8 to 128 characters, and not your name, your address or one that everybody uses.";
    "invalid_name" = "이름은 1자 이상 100자 이하로 적어 주세요.", "A name has 1 to 100 characters.";
    "invalid_phone" = "전화번호를 확인해 주세요. 예: 010-1234-5678", "Please check the phone number, such as +82 10 1234 5678.";
    "agree_first" = "필수 약관에 동의해 주세요.", "Please agree to what is required.";
    "network" = "연결이 끊겼습니다. 인터넷 연결을 확인하고 다시 시도해 주세요.", "There is no connection. Please check it and try again.";
    "other" = "처리하지 못했습니다. 잠시 뒤 다시 시도해 주세요.", "That did not work. Please try again in a moment.";
    "won" = "{amount}원", "₩{amount}";
    "span_days" = "{days}일 {hours}시간", "{days} d {hours} h";
    "row" = "{row}열", "Row {row}";
    "section_option" = "{name} · {price} · 남은 좌석 {free}", "{name} · {price} · {free} free";
    "seat_free" = "{seat}, {price}, 선택 가능", "{seat}, {price}, free";
    "seat_taken" = "{seat}, {price}, 선택 불가", "{seat}, {price}, taken";
    "seat_gone" = "{seat} 좌석은 방금 다른 사람이 잡았습니다. 다른 좌석을 골라 주세요.", "Somebody else has just taken {seat}. Please choose another seat.";
    "seats_enough" = "한 번에 {most}석까지 고를 수 있습니다.", "You can choose up to {most} seats at a time.";
    "hold_over" = "시간이 지나 좌석이 풀렸습니다. 다시 골라 주세요.", "The time is over and the seats were given back. Please choose again.";
    "queue_tab" = "{position}번째 · 대기실", "No. {position} · Waiting room";
    "queue_announce" = "지금 {position}번째입니다. 예상 대기 시간 {wait}.", "You are number {position}. Expected wait: {wait}.";
    "queue_offline" = "연결이 끊겼습니다. 순서는 그대로이며, 연결되면 자동으로 이어집니다.", "There is no connection. You keep your place, and it goes on by itself once you are back.";
    "queue_keeps" = "순서는 그대로이며 자동으로 다시 시도합니다.", "You keep your place; it tries again by itself.";
    "queue_tries" = "아직 줄에 서지 못했습니다. 자동으로 다시 시도합니다.", "You are not in line yet; it tries again by itself.";
    "queue_no_event" = "이 공연을 찾을 수 없습니다.", "There is no such event.";
    "map_old" = "좌석표를 새로 가져오지 못하고 있습니다. 보이는 것은 잠시 전 상태입니다.", "The plan cannot be renewed right now. What you see is from a moment ago.";
    "turn_over" = "입장 시간이 끝났습니다. 다시 줄을 서야 좌석을 잡을 수 있습니다.", "Your time inside is over. You need to wait in line again to hold seats.";
    "room_line" = "대기 {waiting} · 초당 {rate}명", "{waiting} waiting · {rate} a second";
    "done" = "적용했습니다.", "Done.";
    "title_differs" = "공연 이름이 다릅니다. 위에 보이는 그대로 입력해 주세요.", "That is not the title. Please type it as it stands above.";
    "live" = "실시간", "Live";
    "not_live" = "실시간이 아닙니다. 마지막 데이터", "Not live. Last data";
    "polling" = "실시간 연결 없이 2초마다 새로 가져옵니다", "No live connection; renewed every two seconds";
    "now_set" = "현재 {now}", "Now {now}";
    "will_set" = "현재 {now} → {next}", "Now {now} → {next}";
    "let_in" = "{number}명을 들여보냈습니다.", "{number} people were let in.";
    "chart_said" = "{label}: 지금 {now}, 최근 {minutes}분 최고 {most}", "{label}: now {now}, at most {most} in the last {minutes} min";
    "state_open" = "입장 중", "Letting people in";
    "state_open_text" = "앞에서부터 차례로 들어갑니다.", "They go in from the front.";
    "state_free" = "여유", "Free";
    "state_free_text" = "오는 대로 바로 들어갑니다.", "Whoever comes goes straight in.";
    "state_full" = "가득 참", "Full";
    "state_full_text" = "자리가 나는 대로 앞에서부터 들어갑니다.", "They go in from the front as places become free.";
    "state_paused" = "멈춤", "Paused";
    "state_paused_text" = "아무도 들어가지 않습니다. 기다리는 사람은 순서를 지킵니다.", "Nobody goes in. Whoever waits keeps their place.";
    "state_shut" = "닫힘", "Shut";
    "state_shut_text" = "0명으로 정해져 있어 아무도 들어가지 않습니다.", "It is set to zero, so nobody goes in.";
    "state_off" = "꺼짐", "Off";
    "state_off_text" = "아무도 여기서 기다리지 않습니다.", "Nobody waits here.";
    "state_away" = "응답 없음", "Not answering";
    "state_away_text" = "저장소가 응답하지 않아 아무도 들어가지 않습니다. 기다리는 사람은 순서를 지킵니다.", "Its store does not answer, so nobody goes in. Whoever waits keeps their place.";
    "state_none" = "없음", "None";
    "state_none_text" = "이 서버에는 없습니다.", "This installation has none.";
    "deed_queue" = "좌석 앞", "Seats";
    "deed_vwr" = "사이트 앞", "Site";
    "deed_threshold" = "동시 입장 한도를 {number}명으로 바꿈", "Set the threshold to {number}";
    "deed_rate" = "초당 입장을 {number}명으로 바꿈", "Set the rate to {number} per second";
    "deed_pause" = "입장을 멈춤", "Paused admissions";
    "deed_resume" = "입장을 다시 엶", "Resumed admissions";
    "deed_clear" = "대기열을 비움", "Cleared the line";
    "deed_activate" = "대기실을 켬", "Turned the room on";
    "deed_deactivate" = "대기실을 끔", "Turned the room off";
    "deed_advance" = "{number}명까지 더 들여보냄", "Let in up to {number} more";
    "deed_asked" = "{deed} (요청했으나 이루어지지 않음)", "{deed} (asked for, not done)";
    "by_you" = "나", "you";
    "by_other" = "다른 운영자", "another operator";
    "by_system" = "시스템", "the platform";
    "wait_paused" = "입장이 멈춰 있어 알 수 없습니다", "unknown while entry is paused";
    "wait_soon" = "1분 이내", "less than a minute";
    "wait_about" = "약 {minutes}분", "about {minutes} min";
    "wait_range" = "약 {least}–{most}분", "about {least}–{most} min";
};

/// Everything modules can say. A key with a dot is the code of an error.
pub(super) fn all() -> impl Iterator<Item = &'static Text> {
    TEXTS.iter().chain(ERRORS)
}

/// The sentence for an error. What is not listed gets the one for everything else.
pub(crate) fn error(lang: Lang, code: &str) -> &'static str {
    let (_, ko, en) = ERRORS
        .iter()
        .find(|(key, ..)| *key == code)
        .or_else(|| TEXTS.iter().find(|(key, ..)| *key == "other"))
        .expect("there is a sentence for everything else");
    lang.pick(ko, en)
}

/// The module that hands the texts of one language to the others.
pub(crate) fn script(lang: Lang) -> String {
    let mut module = String::from("export default {\n");
    for (key, ko, en) in all() {
        let quoted = |text: &str| serde_json::to_string(text).expect("a text is JSON");
        writeln!(module, "{}: {},", quoted(key), quoted(lang.pick(ko, en)))
            .expect("a String takes everything");
    }
    module.push_str("};\n");
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_gets_a_sentence_too() {
        assert_eq!(error(Lang::En, "auth.busy"), "Many people are signing in. Please try again in a moment.");
        assert_eq!(error(Lang::En, "x.y"), error(Lang::En, "other"));
        assert_eq!(error(Lang::Ko, "saved"), error(Lang::Ko, "other"), "only errors are errors");
    }
}
