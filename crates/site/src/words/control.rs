//! Texts of the admin pages.

use super::words;

words! {
    /// Texts of the admin pages.
    ControlWords {
        title = "관제실", "Control room";
        start = "운영", "Admin";
        start_rooms_text = "대기 인원을 확인하고 입장 속도를 조절합니다.", "Watch the lines and control how fast people get in.";
        start_events = "공연별 관제실", "Control room by event";
        start_security = "계정 보안", "Account security";
        start_security_text = "비밀번호, 2단계 인증, 로그인된 기기를 관리합니다.", "Manage your password, two-step verification and signed-in devices.";
        start_api = "API 문서", "API reference";
        start_api_text = "공연 등록 등 화면이 없는 기능은 API로 사용할 수 있습니다.", "Create events and use features that don't have a page yet.";
        rooms = "대기실 관리", "Waiting rooms";
        rooms_none = "운영 중인 사이트 대기실이 없습니다. 공연을 선택하거나 아래에 ID를 입력하면 열 수 있습니다.",
            "No site waiting room is open. Choose an event or enter an ID below to open one.";
        rooms_events = "예매 중이거나 오픈 예정인 공연", "Events on sale or coming soon";
        rooms_no_events = "해당하는 공연이 없습니다.", "There are none right now.";
        rooms_other = "다른 사이트의 대기실", "Waiting room for another site";
        rooms_id = "대기실 ID", "Waiting room ID";
        rooms_id_hint = "사이트의 프록시가 event 값으로 보내는 UUID입니다.", "The UUID that the site's proxy sends as event.";
        rooms_go = "관제실 열기", "Open control room";
        open = "이 공연의 관제실 열기", "Open the control room";
        connecting = "연결 중…", "Connecting…";
        tier2 = "공연 대기실", "Event waiting room";
        tier1 = "사이트 대기실", "Site waiting room";
        waiting = "대기 중", "Waiting";
        active = "예매 중", "Choosing seats";
        arrived = "도착", "Arriving";
        admitted = "입장", "Admitted";
        wait = "지금 대기하면", "Wait if joining now";
        errors = "오류 응답", "Errors";
        people = "명", "people";
        per_second = "명/초, 10초 평균", "per second, 10 s average";
        errors_unit = "건/초, 10초 평균", "per second, 10 s average";
        minutes = "분:초", "min:s";
        threshold = "동시 입장 한도", "Maximum people inside";
        rate = "초당 입장 인원", "People admitted per second";
        set = "적용", "Apply";
        pause = "입장 일시 중지", "Pause entry";
        resume = "입장 재개", "Resume entry";
        batch = "추가 입장 인원", "Admit more people now";
        advance = "입장시키기", "Admit";
        serving = "현재 입장 번호", "Now serving";
        serving_hint = "발급된 마지막 번호 기준", "of the numbers issued so far";
        no_way_back = "주의가 필요한 작업", "Danger zone";
        people_wait = "명이 대기 중입니다.", "waiting right now.";
        back = "취소", "Cancel";
        clear = "대기열 비우기", "Clear the line";
        clear_hint = "대기 중이거나 예매 중인 모든 사람을 내보냅니다.", "Removes everyone who is waiting or choosing seats.";
        clear_text = "모두가 순서를 잃으며 되돌릴 수 없습니다. 계속하려면 위에 표시된 공연 이름을 입력해 주세요.",
            "Everyone loses their place. This can't be undone. To continue, type the event title shown above.";
        event_title = "공연 이름", "Event title";
        vwr_off = "꺼져 있습니다. 켜면 이 공연의 모든 방문자가 먼저 여기에서 대기합니다.",
            "Off. When it's on, every visitor of this event waits here first.";
        activate = "켜기", "Turn on";
        activate_title = "사이트 대기실을 켜시겠습니까?", "Turn on the site waiting room?";
        activate_text = "켜는 즉시 이 공연의 새 방문자는 모두 대기실로 이동합니다. 이미 입장한 사람은 그대로 예매할 수 있습니다.",
            "New visitors of this event are sent to the waiting room right away. People who are already inside can go on.";
        deactivate = "끄기", "Turn off";
        deactivate_hint = "대기 중인 모든 사람이 한꺼번에 입장합니다.", "Everyone who is waiting gets in at once.";
        deactivate_text = "대기 중인 사람이 한꺼번에 공연 대기실로 이동합니다. 다시 켜면 번호는 1번부터 시작합니다.",
            "They all move on to the event waiting room at once. If you turn it on again, numbers start from one.";
        deeds = "기록", "Activity";
        deeds_none = "아직 기록이 없습니다.", "Nothing has been changed yet.";
    }
}
