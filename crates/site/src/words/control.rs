//! Texts of the room from which a sale is run.

use super::words;

words! {
    /// Texts of the control room.
    ControlWords {
        title = "관제실", "Control room";
        rooms = "모든 대기실", "All waiting rooms";
        rooms_none = "지금은 사이트 앞 대기실이 없습니다. 공연을 고르거나 아래에 번호를 입력해 켤 수 있습니다.",
            "There is no room in front of anything right now. Choose an event, or enter an id below, to open one.";
        rooms_events = "예매 중이거나 곧 열리는 공연", "Events on sale or soon";
        rooms_no_events = "지금은 없습니다.", "There are none right now.";
        rooms_other = "다른 사이트의 대기실", "The line of another site";
        rooms_id = "대기실 번호", "Id of the line";
        rooms_id_hint = "사이트의 프록시가 event 값으로 보내는 UUID입니다.", "The UUID that the site's proxy sends as event.";
        rooms_go = "관제실 열기", "Open its control room";
        open = "이 공연의 관제실 열기", "Open the control room";
        connecting = "연결 중…", "Connecting…";
        tier2 = "좌석 앞 대기실", "In front of the seats";
        tier1 = "사이트 앞 대기실", "In front of everything";
        waiting = "대기 중", "Waiting";
        active = "예매 중", "Choosing seats";
        arrived = "도착", "Arriving";
        admitted = "입장", "Let in";
        wait = "지금 오면 대기", "Wait from now";
        errors = "오류 응답", "Errors";
        people = "명", "people";
        per_second = "명/초, 10초 평균", "a second, 10 s mean";
        errors_unit = "건/초, 10초 평균", "a second, 10 s mean";
        minutes = "분:초", "min:s";
        threshold = "동시에 들어올 수 있는 사람", "How many may be in at once";
        rate = "초당 들여보낼 사람", "People per second";
        set = "적용", "Apply";
        pause = "입장 멈추기", "Pause admissions";
        resume = "입장 다시 열기", "Resume admissions";
        batch = "지금 더 들여보낼 사람", "Let more in right now";
        advance = "들여보내기", "Let in";
        serving = "입장 번호", "Now serving";
        serving_hint = "마지막으로 나눠 준 번호까지", "of the numbers given so far";
        no_way_back = "되돌릴 수 없는 일", "No way back";
        people_wait = "명이 기다리고 있습니다.", "people are waiting right now.";
        back = "그만두기", "Cancel";
        clear = "대기열 비우기", "Clear the line";
        clear_hint = "기다리는 사람과 예매 중인 사람 모두를 내보냅니다.", "Sends away everybody who waits or is choosing seats.";
        clear_text = "모두가 순서를 잃고, 되돌릴 수 없습니다. 계속하려면 공연 이름을 그대로 입력하세요.",
            "Everybody loses their place, and it cannot be undone. Type the event's title as it stands above to go on.";
        event_title = "공연 이름", "Title of the event";
        vwr_off = "꺼져 있습니다. 켜면 이 공연의 모든 방문자가 먼저 여기에 줄을 섭니다.",
            "It is off. Once it is on, every visitor of this event lines up here first.";
        activate = "켜기", "Turn it on";
        deactivate = "끄기", "Turn it off";
        deactivate_hint = "기다리던 모든 사람이 한꺼번에 들어옵니다.", "Everybody who waits comes in at once.";
        deactivate_text = "이 사람들이 한꺼번에 좌석 앞으로 갑니다. 다시 켜면 번호는 1번부터 시작합니다.",
            "They all move on to the seats at once. If you turn it on again, numbers start from one.";
        deeds = "기록", "Log";
        deeds_none = "아직 아무도 이 대기실을 조작하지 않았습니다.", "Nobody has changed anything in these rooms yet.";
    }
}
