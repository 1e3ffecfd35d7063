//! Texts of the room from which a sale is run.

use super::words;

words! {
    /// Texts of the control room.
    ControlWords {
        title = "관제실", "Control room";
        open = "이 공연의 관제실 열기", "Open the control room";
        lead = "숫자는 2초마다 새로 가져옵니다. 여기서 하는 모든 일은 기록됩니다.",
            "Figures are renewed every two seconds. Everything done here is recorded.";
        waiting = "대기 중", "Waiting";
        active = "예매 중", "Choosing seats";
        admitted = "입장 속도", "Admitted";
        wait = "예상 대기", "Expected wait";
        people = "명", "people";
        per_second = "명/초", "per second";
        seconds = "초", "seconds";
        over_time = "최근 5분", "the last five minutes";
        tier2 = "좌석 앞 대기실", "In front of the seats";
        is_open = "입장 중", "Open";
        is_paused = "멈춤", "Paused";
        threshold = "동시에 들어올 수 있는 사람", "How many may be in at once";
        set_threshold = "적용", "Set";
        pause = "입장 멈추기", "Pause admissions";
        resume = "입장 다시 열기", "Resume admissions";
        clear = "대기열 비우기", "Clear the line";
        clear_text = "기다리던 모든 사람이 순서를 잃습니다. 되돌릴 수 없습니다. 계속하려면 공연 이름을 그대로 입력하세요.",
            "Everybody who waits loses their place, and this cannot be undone. Type the event's title as it stands above to go on.";
        event_title = "공연 이름", "Title of the event";
        tier1 = "사이트 앞 대기실", "In front of everything";
        vwr_off = "꺼져 있습니다. 켜면 이 공연의 모든 방문자가 먼저 줄을 섭니다.",
            "It is off. Once it is on, every visitor of this event lines up first.";
        vwr_none = "이 서버에는 사이트 앞 대기실이 없습니다.", "This installation has no room in front of everything.";
        serving = "입장 번호", "Now serving";
        tail = "마지막으로 나눠 준 번호", "Last number given";
        rate = "초당 들여보낼 사람", "People per second";
        set_rate = "적용", "Set";
        batch = "지금 더 들여보낼 사람", "People to let in now";
        advance = "들여보내기", "Let them in";
        activate = "켜기", "Turn it on";
        deactivate = "끄기", "Turn it off";
        deeds = "최근에 한 일", "What was done lately";
        deeds_none = "아직 아무도 이 대기실을 조작하지 않았습니다.", "Nobody has changed anything in this room yet.";
    }
}
