//! Texts of events and their seats.

use super::words;

words! {
    /// Texts of events and their seats.
    SaleWords {
        home_title = "공연", "Events";
        home_lead = "먼저 온 순서대로, 공정하게 예매하세요.", "First come, first served. No cutting in line.";
        on_sale = "예매 중", "On sale";
        soon = "오픈 예정", "Coming soon";
        sold_out = "매진", "Sold out";
        ended = "지난 공연", "Past events";
        cancelled = "공연 취소", "Cancelled";
        is_ended = "예매 종료", "Sale ended";
        none = "등록된 공연이 없습니다. 공연이 등록되면 예매 일정과 함께 안내해 드립니다.",
            "There are no events yet. Upcoming events and their sale dates will appear here.";
        when = "공연 일시", "Date";
        venue = "장소", "Venue";
        artist = "출연", "Artist";
        price = "가격", "Price";
        sale_opens = "예매 시작", "Sale opens";
        sale_closes = "예매 마감", "Sale closes";
        places = "좌석", "Seats";
        left = "잔여 {left}석", "{left} left";
        limit = "구매 제한", "Ticket limit";
        limit_text = "1인 최대 {user}매", "{user} [ticket|tickets] per person";
        limit_both = "1회 {each}매, 1인 최대 {user}매", "{each} [ticket|tickets] per order, {user} per person";
        kinds = "티켓 종류", "Ticket types";
        enter = "예매하기", "Get tickets";
        enter_hint = "접속자가 많으면 대기실에서 순서대로 안내해 드립니다.", "If it's busy, you'll wait in line in the order you arrived.";
        enter_early = "미리 대기하기", "Join the line early";
        enter_early_hint = "온 순서대로 대기하고, 예매가 시작되면 차례로 입장합니다.", "Get your place in line now. You'll be taken in, in order, once the sale opens.";
        opens_in = "예매 시작까지", "Sale opens in";
        standing_off = "스탠딩 티켓은 아직 온라인으로 판매하지 않습니다.", "Standing tickets aren't sold online yet.";
        closed_text = "예매가 종료되었습니다.", "This sale has ended.";
        cancelled_text = "취소된 공연입니다.", "This event has been cancelled.";
        sold_out_text = "현재 남은 좌석이 없습니다. 결제되지 않은 좌석은 5분 뒤 다시 판매됩니다.",
            "There are no seats left right now. Seats that aren't paid for go back on sale after 5 minutes.";
        seats_title = "좌석 선택", "Choose your seats";
        slot_left = "예매 가능 시간", "Time left to choose";
        slot_leave = "예매 그만하기", "Leave";
        slot_leave_title = "예매를 그만하시겠습니까?", "Leave without tickets?";
        slot_leave_text = "다음 대기자에게 순서가 넘어갑니다. 다시 예매하려면 처음부터 대기해야 합니다.",
            "Your turn goes to the next person. To come back you'd have to wait in line again.";
        slot_stay = "계속 선택하기", "Keep choosing";
        stage = "무대", "Stage";
        seat_plan = "좌석 배치도", "Seating plan";
        seats_loading = "좌석을 불러오고 있습니다…", "Loading seats…";
        section = "구역", "Section";
        swipe = "옆으로 밀면 더 많은 좌석을 볼 수 있습니다.", "Scroll sideways to see more seats.";
        chosen = "선택한 좌석", "Your seats";
        chosen_none = "배치도에서 좌석을 선택해 주세요. 최대 {each}석까지 선택할 수 있습니다.",
            "Choose up to {each} [seat|seats] on the plan.";
        total = "합계", "Total";
        hold = "좌석 선택 완료", "Hold seats";
        free = "선택 가능", "Available";
        taken = "선택 불가", "Not available";
        yours = "선택한 좌석", "Your choice";
        held_title = "좌석이 선점되었습니다", "Your seats are held";
        held_text = "남은 시간 안에 결제하지 않으면 선점이 해제됩니다.",
            "If you don't pay in time, the seats go back on sale.";
        held_payment = "온라인 결제는 준비 중입니다.", "Online payment isn't available yet.";
        held_number = "예약 번호", "Reservation number";
        held_until = "남은 시간", "Time left";
        give_back = "좌석 선택 취소", "Release seats";
        give_back_title = "좌석 선택을 취소하시겠습니까?", "Release your seats?";
        give_back_text = "선점한 좌석이 즉시 다른 사람에게 공개됩니다.", "Other people will be able to take them right away.";
        keep = "좌석 유지", "Keep seats";
        back_to_event = "공연 정보 보기", "Back to event";
    }
}
