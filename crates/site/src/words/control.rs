//! Texts of the room from which a sale is run.

use super::words;

words! {
    /// Texts of the control room.
    Control {
        title = "관제실", "Control room";
        live = "실시간", "Live";
        waiting = "대기 중", "Waiting";
        active = "예매 중", "Active";
        threshold = "동시 입장 한도", "Threshold";
        admitted = "초당 입장", "Admitted per second";
        arrivals = "초당 도착", "Arrivals per second";
        wait = "예상 대기", "Expected wait";
        errors = "응답 실패", "Failed answers";
        seconds = "초", "s";
        over_time = "최근 5분", "Last five minutes";
        tier2 = "2차 대기실 (이 공연의 좌석 앞)", "Tier 2: in front of this event's seats";
        tier1 = "1차 대기실 (모두의 앞)", "Tier 1: in front of everything";
        set_threshold = "한도 적용", "Set the threshold";
        pause = "입장 멈추기", "Pause admissions";
        resume = "입장 다시 열기", "Resume admissions";
        clear = "대기열 비우기", "Clear the line";
        clear_text = "기다리던 모든 사람이 순서를 잃습니다. 되돌릴 수 없습니다. 계속하려면 공연 이름을 입력하세요.",
            "Everybody who waits loses their place. This cannot be undone. Type the event's title to go on.";
        event_title = "공연 이름", "Title of the event";
        rate = "초당 입장 수", "Visitors per second";
        set_rate = "속도 적용", "Set the rate";
        advance = "지금 더 들이기", "Let more in now";
        batch = "인원", "People";
        activate = "1차 대기실 켜기", "Turn tier 1 on";
        deactivate = "1차 대기실 끄기", "Turn tier 1 off";
        vwr_off = "1차 대기실이 꺼져 있습니다. 켜면 모든 방문자가 먼저 줄을 섭니다.",
            "Tier 1 is off. Once it is on, every visitor lines up first.";
        serving = "입장 번호", "Now serving";
        tail = "마지막 번호", "Last number given";
        audited = "여기서 하는 모든 일은 기록됩니다.", "Everything done here is recorded.";
        figures = "지금 상태", "Right now";
    }
}
