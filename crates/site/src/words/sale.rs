//! Texts of events and their seats.

use super::words;

words! {
    /// Texts of events and their seats.
    SaleWords {
        home_title = "공연", "Events";
        home_lead = "먼저 온 순서대로, 공평하게 예매하세요.", "First come, first served, and nobody overtakes.";
        on_sale = "예매 중", "On sale";
        soon = "곧 열려요", "Opening soon";
        sold_out = "매진", "Sold out";
        ended = "지난 공연", "Past events";
        cancelled = "취소됨", "Cancelled";
        is_ended = "예매 종료", "Sale ended";
        none = "아직 등록된 공연이 없습니다. 공연이 등록되면 이곳에서 예매 시간과 함께 볼 수 있습니다.",
            "There is no event yet. When there is one, it is shown here with the time its sale opens.";
        when = "공연 일시", "When";
        venue = "장소", "Where";
        artist = "출연", "With";
        price = "가격", "Price";
        sale_opens = "예매 시작", "Sale opens";
        sale_closes = "예매 마감", "Sale closes";
        places = "좌석", "Places";
        left = "남은 자리", "Left";
        limit = "구매 제한", "Limit";
        limit_text = "한 번에 {each}매, 한 사람 최대 {user}매", "{each} at a time, {user} per person";
        kinds = "입장권 종류", "Kinds of tickets";
        enter = "예매하러 가기", "Get tickets";
        enter_hint = "사람이 많으면 대기실에서 온 순서대로 안내합니다.", "If many people come, you wait in line in the order you arrived.";
        enter_early = "미리 줄서기", "Join the line early";
        enter_early_hint = "온 순서대로 자리를 잡고, 예매가 시작되면 차례로 들어갑니다.", "You take your place in the order you came, and come in once the sale opens.";
        opens_in = "예매 시작까지", "Opens in";
        standing_off = "스탠딩 입장권은 아직 온라인으로 판매하지 않습니다.", "Standing tickets are not sold online yet.";
        closed_text = "예매가 끝났습니다.", "The sale is over.";
        cancelled_text = "취소된 공연입니다.", "This event was called off.";
        sold_out_text = "지금은 남은 자리가 없습니다. 결제하지 않은 자리는 5분 뒤 다시 풀립니다.",
            "No place is left right now. Seats that are not paid for come back after five minutes.";
        seats_title = "좌석 선택", "Choose seats";
        stage = "무대", "Stage";
        seat_plan = "좌석 배치도", "Seat plan";
        seats_loading = "좌석을 불러오는 중입니다…", "Loading the seats…";
        section = "구역", "Section";
        chosen = "선택한 좌석", "Your choice";
        chosen_none = "배치도에서 좌석을 골라 주세요. 한 번에 {each}석까지 고를 수 있습니다.",
            "Pick seats on the plan, up to {each} at a time.";
        total = "합계", "Total";
        hold = "이 좌석 잡기", "Hold these seats";
        free = "선택 가능", "Free";
        taken = "선택 불가", "Taken";
        yours = "내가 고른 좌석", "Your choice";
        held_title = "좌석을 잡았습니다", "The seats are yours for now";
        held_text = "아래 시간 안에 결제를 마치지 않으면 좌석이 다시 풀립니다.",
            "Unless they are paid for in time, they go back on sale.";
        held_payment = "온라인 결제는 준비 중입니다.", "Paying online is not built yet.";
        held_number = "예약 번호", "Reservation";
        held_until = "남은 시간", "Time left";
        give_back = "좌석 놓아주기", "Give the seats back";
        back_to_event = "공연 안내로", "Back to the event";
    }
}
