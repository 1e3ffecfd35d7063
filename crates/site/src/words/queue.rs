//! Texts of the waiting room, and of the room from which it is run.

use super::words;

words! {
    /// Texts of the waiting room.
    QueueWords {
        title = "대기실", "Waiting room";
        joining = "순서를 확인하고 있습니다…", "Finding your place…";
        your_place = "내 순서", "Your place";
        ahead = "앞에 있는 사람", "Ahead of you";
        behind = "뒤에 있는 사람", "Behind you";
        wait = "예상 대기 시간", "Expected wait";
        inside = "지금 예매 중인 사람", "Choosing seats now";
        keep_open = "이 창을 열어 두세요. 차례가 되면 자동으로 넘어갑니다. 새로 고치거나 잠시 닫았다가 돌아와도 순서는 그대로입니다.",
            "Keep this page open: it moves on by itself when it is your turn. Your place is kept if you reload, or close it and come back soon.";
        leave = "대기 그만두기", "Leave the line";
        admitted = "입장할 차례입니다. 좌석 화면으로 이동합니다…", "It is your turn. Taking you to the seats…";
        go_now = "지금 입장하기", "Go in now";
        left_title = "대기를 그만두었습니다", "You left the line";
        left_text = "다시 줄을 서면 순서가 달라질 수 있습니다.", "If you join again, you may get another place.";
        refused_title = "줄을 설 수 없습니다", "You are not in line";
        try_again = "다시 시도", "Try again";
        join_again = "다시 줄 서기", "Join again";
        needs_script = "대기 순서를 확인하려면 자바스크립트가 필요합니다. 브라우저 설정에서 켠 뒤 새로 고침해 주세요.",
            "The waiting room needs JavaScript. Please turn it on in your browser and load the page again.";
        paused = "지금은 입장이 잠시 멈춰 있습니다. 순서는 그대로이며, 다시 열리면 이어집니다.",
            "Nobody is let in for the moment. You keep your place, and it goes on when entry opens again.";
        progress = "대기 진행 상황", "How far you have come";
    }
}
