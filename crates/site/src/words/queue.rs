//! Texts of the waiting room.

use super::words;

words! {
    /// Texts of the waiting room.
    QueueWords {
        title = "대기실", "Waiting room";
        joining = "대기 순서를 확인하고 있습니다…", "Getting your place in line…";
        your_place = "나의 대기 순서", "Your place in line";
        ahead = "내 앞 대기 인원", "People ahead of you";
        behind = "내 뒤 대기 인원", "People behind you";
        wait = "예상 대기 시간", "Estimated wait";
        inside = "현재 예매 중인 인원", "Choosing seats now";
        keep_open = "이 화면을 열어 두세요. 차례가 되면 자동으로 입장합니다. 새로고침하거나 잠시 닫았다가 돌아와도 순서는 유지됩니다.",
            "Keep this page open. We'll take you in automatically when it's your turn. You keep your place if you refresh, or if you close the page and come back soon.";
        opens_in = "예매 시작까지", "Sale opens in";
        early = "예매가 시작되면 순서대로 입장합니다. 창을 닫아도 순서는 24시간 동안 유지되므로, 하루에 한 번은 방문하고 예매 시작 전에 다시 접속해 주세요.",
            "You'll be taken in, in order, once the sale opens. You can close this page: your place is kept for 24 hours, so come back at least once a day and be here before the sale opens.";
        leave = "대기 취소", "Leave the line";
        leave_title = "대기를 취소하시겠습니까?", "Leave the line?";
        leave_text = "현재 순서를 잃게 됩니다. 다시 대기하면 맨 뒤부터 시작합니다.",
            "You'll lose your place. If you join again, you start at the back of the line.";
        stay = "계속 대기", "Stay in line";
        admitted = "입장할 차례입니다. 좌석 선택 화면으로 이동합니다…", "It's your turn. Taking you to the seats…";
        go_now = "지금 입장하기", "Enter now";
        left_title = "대기를 취소했습니다", "You left the line";
        left_text = "다시 대기하면 맨 뒤부터 시작합니다.", "If you join again, you start at the back of the line.";
        refused_title = "대기열에 입장할 수 없습니다", "You can't join this line";
        entries_title = "대기 중인 다른 공연", "Your other waiting rooms";
        entries_text = "하나를 취소하면 이 공연의 대기열에 입장할 수 있습니다.", "Leave one of them to join this one.";
        try_again = "다시 시도", "Try again";
        join_again = "다시 대기하기", "Join again";
        needs_script = "대기실을 이용하려면 자바스크립트가 필요합니다. 브라우저 설정에서 켠 뒤 새로고침해 주세요.",
            "The waiting room needs JavaScript. Please turn it on in your browser and reload the page.";
        paused = "입장이 일시 중지되었습니다. 순서는 그대로 유지됩니다.",
            "Entry is paused. You keep your place.";
        progress = "대기 진행 상황", "Progress";
    }
}
