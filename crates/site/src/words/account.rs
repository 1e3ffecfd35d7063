//! Texts of signing in and up, and of one's own account.

use super::words;

words! {
    /// Texts of signing in and up, and of one's own account.
    AccountWords {
        login_title = "로그인", "Sign in";
        email = "이메일", "E-mail";
        password = "비밀번호", "Password";
        sign_in = "로그인", "Sign in";
        forgot = "비밀번호를 잊었나요?", "Forgot your password?";
        no_account = "아직 계정이 없나요?", "No account yet?";
        register = "회원 가입", "Create an account";
        or = "또는", "or";
        with_google = "Google로 계속하기", "Continue with Google";
        with_kakao = "카카오로 계속하기", "Continue with Kakao";
        with_naver = "네이버로 계속하기", "Continue with Naver";
        second_title = "2단계 인증", "Second factor";
        second_text = "인증 앱에 보이는 6자리 숫자를 입력해 주세요. 휴대폰이 없다면 복구 코드를 쓸 수 있습니다.",
            "Enter the six digits your authenticator app shows. Without your phone, use a recovery code.";
        second_code = "인증 코드 또는 복구 코드", "Code or recovery code";
        confirm = "확인", "Confirm";
        start_again = "처음부터 다시", "Start again";
        register_title = "회원 가입", "Create an account";
        name = "이름", "Name";
        phone = "휴대폰 번호", "Phone number";
        phone_hint = "예매 안내에만 씁니다. 예: 010-1234-5678", "For news about your bookings alone, such as +82 10 1234 5678";
        password_hint = "8자 이상. 이메일이나 이름과 같거나 흔한 비밀번호는 쓸 수 없습니다.",
            "At least 8 characters; not your name, your address or one that everybody uses.";
        terms = "약관 동의", "Agreements";
        terms_service = "서비스 이용약관에 동의합니다", "I agree to the terms of service";
        terms_service_read = "이용약관 내용 보기", "Read the terms of service";
        terms_service_text = "계정은 본인만 쓰고, 한 사람이 여러 계정으로 대기 순서나 구매 수량을 늘리지 않습니다. 예매와 취소는 각 공연에 안내된 규칙을 따릅니다.",
            "The account is yours alone, and nobody uses several to get more places in line or more seats. Booking and cancelling follow the rules shown with each event.";
        terms_privacy = "개인정보 수집·이용에 동의합니다", "I agree to how personal data is handled";
        terms_privacy_read = "개인정보 처리 내용 보기", "Read how personal data is handled";
        terms_privacy_text = "이메일, 이름, (입력한 경우) 휴대폰 번호와 로그인 기록을 예매와 계정 보호를 위해 보관합니다. 탈퇴하면 정해진 기간 뒤 지웁니다.",
            "We keep your e-mail address, your name, your phone number if you give it, and your sign-ins, to sell you tickets and to protect the account. They are erased some time after you close it.";
        terms_marketing = "공연 소식과 혜택을 메일로 받겠습니다", "Send me news and offers by mail";
        create = "가입하기", "Create the account";
        have_account = "이미 계정이 있나요?", "Have an account already?";
        finish_title = "가입 마무리", "Finish signing up";
        finish_text = "처음 오셨네요. 아래 내용을 확인하고 약관에 동의하면 가입이 끝납니다.",
            "You are new here. Check what is below, agree to the terms, and you are done.";
        forgot_title = "비밀번호 재설정", "Set a new password";
        forgot_text = "가입한 이메일 주소를 입력하면 새 비밀번호를 정할 수 있는 링크를 보내 드립니다.",
            "Enter the address of your account and we will mail you a link to set a new password.";
        send_link = "링크 보내기", "Send the link";
        sent_title = "메일함을 확인해 주세요", "Look into your mailbox";
        sent_text = "이 주소로 만든 계정이 있다면 메일이 곧 도착합니다. 링크는 30분 동안 한 번만 쓸 수 있습니다.",
            "If there is an account with this address, a mail is on its way. Its link works once, for 30 minutes.";
        back_to_login = "로그인으로 돌아가기", "Back to signing in";
        reset_title = "새 비밀번호 정하기", "Choose a new password";
        reset_text = "새 비밀번호로 바꾸면 모든 기기에서 로그아웃됩니다.", "Setting it signs you out on every device.";
        new_password = "새 비밀번호", "New password";
        set_password = "비밀번호 바꾸기", "Set the password";
        reset_done_title = "비밀번호를 바꿨습니다", "Your password is changed";
        reset_done_text = "새 비밀번호로 로그인해 주세요.", "Please sign in with the new one.";
        link_missing_title = "링크가 완전하지 않습니다", "The link is not complete";
        link_missing_text = "메일에 있는 링크를 처음부터 끝까지 그대로 열어 주세요. 이미 썼거나 오래된 링크라면 새로 받을 수 있습니다.",
            "Please open the whole link from the mail. If it was used or is too old, you can ask for a new one.";
        new_link = "새 링크 받기", "Ask for a new link";
        verify_title = "이메일 주소 확인", "Confirm your e-mail address";
        verify_text = "아래 단추를 누르면 이 이메일 주소가 본인의 것으로 확인됩니다.",
            "Press the button to confirm that this e-mail address is yours.";
        verify = "이메일 주소 확인하기", "Confirm the address";
        verified_title = "확인되었습니다", "Confirmed";
        verified_text = "이제 이 주소로 예매 안내를 받을 수 있습니다.", "From now on we can send you news about your bookings.";
        title = "내 계정", "My account";
        profile = "프로필", "Profile";
        mail_language = "메일 언어", "Language of mails";
        save = "저장", "Save";
        email_unverified = "아직 확인되지 않은 주소입니다.", "This address is not confirmed yet.";
        email_verified = "확인된 주소", "Confirmed";
        send_verification = "확인 메일 보내기", "Send a confirmation mail";
        change_password = "비밀번호 변경", "Change the password";
        current_password = "현재 비밀번호", "Current password";
        change_password_text = "바꾸면 다른 모든 기기에서 로그아웃됩니다.", "Other devices are signed out when you change it.";
        second_off_text = "로그인할 때 비밀번호와 함께 인증 앱의 숫자를 한 번 더 확인합니다.",
            "Signing in then needs your password and six digits from an authenticator app.";
        second_is_on = "켜짐", "On";
        second_is_off = "꺼짐", "Off";
        second_needed = "운영자 계정은 2단계 인증을 켜야 운영 기능을 쓸 수 있습니다.",
            "Administrators need a second factor before they may operate anything.";
        second_on = "2단계 인증 켜기", "Turn it on";
        second_off = "2단계 인증 끄기", "Turn it off";
        second_scan = "인증 앱으로 QR 코드를 읽거나 아래 키를 입력한 뒤, 앱에 보이는 6자리 숫자를 적어 주세요.",
            "Scan the QR code with an authenticator app or type the key below, then enter the six digits it shows.";
        second_qr = "인증 앱에 등록할 QR 코드", "QR code for an authenticator app";
        second_key = "직접 입력할 키", "Key to type";
        second_open = "이 기기의 인증 앱에서 열기", "Open in an app on this device";
        recovery_title = "복구 코드", "Recovery codes";
        recovery_text = "휴대폰을 잃어버렸을 때 하나씩 한 번만 쓸 수 있습니다. 지금만 볼 수 있으니 안전한 곳에 적어 두세요.",
            "Each works once, for the day your phone is lost. They are shown only now: keep them somewhere safe.";
        recovery_renew = "복구 코드 새로 만들기", "Make new recovery codes";
        recovery_saved = "적어 두었습니다", "I have kept them";
        copy = "복사", "Copy";
        linked = "연결된 계정", "Linked accounts";
        linked_text = "연결해 두면 비밀번호 없이도 로그인할 수 있습니다.", "A linked account is another way to sign in.";
        linked_since = "연결한 날", "Linked on";
        link = "연결하기", "Link";
        unlink = "연결 끊기", "Unlink";
        linked_none = "이 사이트에는 연결할 수 있는 서비스가 없습니다.", "This site offers no service to link with.";
        sessions = "로그인된 기기", "Where you are signed in";
        session_current = "지금 이 기기", "This device";
        session_used = "마지막 사용", "Last used";
        session_end = "이 세션 끝내기", "End this session";
        sign_out_everywhere = "모든 기기에서 로그아웃", "Sign out everywhere";
        history = "로그인 기록", "Sign-in history";
        history_ok = "성공", "Signed in";
        history_wrong_password = "비밀번호 틀림", "Wrong password";
        history_wrong_code = "인증 코드 틀림", "Wrong code";
        history_none = "아직 로그인 기록이 없습니다. 로그인하면 시각과 기기가 여기에 남습니다.",
            "Nothing yet. When somebody signs in, the time and the device are listed here.";
        method_password = "비밀번호", "Password";
        method_reset = "비밀번호 재설정", "Password reset";
        method_second_factor = "2단계 인증 변경", "Change of the second factor";
        unknown_device = "알 수 없는 기기", "Unknown device";
        close_title = "계정 삭제", "Delete the account";
        close_text = "계정은 바로 닫히고 되돌릴 수 없습니다. 개인정보는 정해진 기간이 지나면 지워집니다.",
            "The account closes at once and cannot be opened again. Personal data is erased after a set time.";
        close_confirm = "되돌릴 수 없다는 것을 알고 있습니다", "I know that this cannot be undone";
        close_button = "계정 삭제하기", "Delete my account";
        recent_sign_in = "이 계정에는 비밀번호가 없으므로, 방금 로그인한 상태에서만 바꿀 수 있습니다.",
            "This account has no password, so this works only shortly after signing in.";
    }
}
