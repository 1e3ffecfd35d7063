//! Texts of the layout and of error pages.

use super::words;

words! {
    /// Texts of the layout and of error pages.
    CommonWords {
        brand = "우르르", "URR";
        tagline = "모두가 한꺼번에 와도, 온 순서대로.", "Fair ticketing, however big the crowd.";
        to_content = "본문 바로가기", "Skip to content";
        menu = "주 메뉴", "Main menu";
        languages = "언어", "Languages";
        sign_in = "로그인", "Sign in";
        sign_out = "로그아웃", "Sign out";
        my_account = "마이페이지", "My account";
        admin = "운영", "Admin";
        to_events = "공연 보기", "Browse events";
        home = "홈으로", "Go to homepage";
        try_again = "다시 시도", "Try again";
        needs_script = "이 화면을 이용하려면 자바스크립트가 필요합니다. 브라우저 설정에서 켠 뒤 새로고침해 주세요.",
            "This page needs JavaScript. Please turn it on in your browser and reload the page.";
        times_are_seoul = "모든 시각은 한국 시각(서울) 기준입니다.", "All times are Seoul time (KST).";
        optional = "선택", "optional";
        required = "필수", "required";
        oops_not_found = "페이지를 찾을 수 없습니다", "Page not found";
        oops_not_found_text = "주소가 변경되었거나 잘못 입력되었을 수 있습니다. 주소를 다시 확인해 주세요.",
            "The link may be broken or the page may have been moved.";
        oops_busy = "요청이 너무 많습니다", "Too many requests";
        oops_busy_text = "잠시 후 다시 시도해 주세요. 계속 새로고침하지 않으셔도 됩니다.",
            "Please wait a moment and try again. There's no need to keep refreshing.";
        oops_away = "지금은 페이지를 표시할 수 없습니다", "This page isn't available right now";
        oops_away_text = "서비스 일부가 응답하지 않습니다. 잠시 후 다시 시도해 주세요. 완료한 내용은 그대로 저장되어 있습니다.",
            "Part of our service isn't responding. Please try again in a moment. Anything you've completed is saved.";
        oops_denied = "접근 권한이 없습니다", "You don't have access to this page";
        oops_denied_text = "권한이 있는 계정으로 로그인했는지 확인해 주세요.",
            "Make sure you're signed in with an account that has access.";
        oops_bad = "잘못된 주소입니다", "This link isn't valid";
        oops_bad_text = "링크가 일부 잘렸을 수 있습니다. 홈에서 다시 찾아 주세요.",
            "Part of the link may be missing. Try starting from the homepage.";
        oops_broken = "문제가 발생했습니다", "Something went wrong";
        oops_broken_text = "문제를 기록했습니다. 같은 문제가 계속되면 아래 요청 번호를 알려 주세요.",
            "We've recorded the problem. If it keeps happening, send us the request number below.";
        request_number = "요청 번호", "Request number";
    }
}
