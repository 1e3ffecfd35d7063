//! Texts around every page, and of the pages that say what went wrong.

use super::words;

words! {
    /// Texts around every page.
    CommonWords {
        brand = "우르르", "URR";
        tagline = "모두가 한꺼번에 와도, 온 순서대로.", "Everybody at once, and still in order.";
        to_content = "본문으로 건너뛰기", "Skip to the content";
        menu = "주 메뉴", "Main menu";
        languages = "언어", "Languages";
        sign_in = "로그인", "Sign in";
        sign_out = "로그아웃", "Sign out";
        my_account = "내 계정", "My account";
        to_events = "공연 보기", "See the events";
        home = "처음으로", "Back to the start";
        try_again = "다시 시도", "Try again";
        needs_script = "이 화면에서 무언가를 바꾸려면 자바스크립트가 필요합니다. 브라우저 설정에서 켠 뒤 새로 고침해 주세요.",
            "Changing anything here needs JavaScript. Please turn it on in your browser and load the page again.";
        times_are_seoul = "모든 시각은 한국 시각(서울)입니다.", "All times are in Seoul (KST).";
        optional = "선택", "optional";
        required = "필수", "required";
        oops_not_found = "페이지를 찾을 수 없습니다", "There is no such page";
        oops_not_found_text = "주소가 바뀌었거나 잘못 입력되었을 수 있습니다. 주소를 확인하거나 처음 화면에서 찾아보세요.",
            "The address may have changed or be mistyped. Please check it, or start from the first page.";
        oops_busy = "지금은 요청이 너무 많습니다", "There are too many requests right now";
        oops_busy_text = "잠시 기다렸다가 다시 시도해 주세요. 자동으로 새로 고칠 필요는 없습니다.",
            "Please wait a moment and try again. There is no need to keep reloading.";
        oops_away = "지금은 이 화면을 보여 드릴 수 없습니다", "This page cannot be shown right now";
        oops_away_text = "서비스 일부가 응답하지 않습니다. 잠시 뒤 다시 시도해 주세요. 이미 마친 일은 그대로 남아 있습니다.",
            "A part of the service does not answer. Please try again in a moment. What you have done is kept.";
        oops_denied = "이 화면을 볼 수 없습니다", "You may not see this page";
        oops_denied_text = "필요한 권한이 있는 계정으로 로그인했는지 확인해 주세요.",
            "Please check that you are signed in with an account that may.";
        oops_bad = "이해할 수 없는 주소입니다", "This address makes no sense";
        oops_bad_text = "링크가 잘렸을 수 있습니다. 처음 화면에서 다시 찾아보세요.",
            "The link may have been cut off. Please start from the first page.";
        oops_broken = "저희 쪽에 문제가 생겼습니다", "Something went wrong on our side";
        oops_broken_text = "문제가 기록되었습니다. 다시 시도해도 같은 화면이 나오면 아래 번호를 알려 주세요.",
            "It has been logged. If it happens again, please tell us the number below.";
        request_number = "요청 번호", "Request number";
    }
}
