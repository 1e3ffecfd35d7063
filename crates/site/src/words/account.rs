//! Texts of sign-in, registration and the account page.

use super::words;

words! {
    /// Texts of sign-in, registration and the account page.
    AccountWords {
        login_title = "로그인", "Sign in";
        email = "이메일", "Email";
        password = "비밀번호", "Password";
        sign_in = "로그인", "Sign in";
        forgot = "비밀번호를 잊으셨나요?", "Forgot your password?";
        no_account = "아직 회원이 아니신가요?", "New here?";
        register = "회원가입", "Create an account";
        or = "또는", "or";
        with_google = "Google로 계속하기", "Continue with Google";
        with_kakao = "카카오로 계속하기", "Continue with Kakao";
        with_naver = "네이버로 계속하기", "Continue with Naver";
        second_title = "2단계 인증", "Two-step verification";
        second_text = "인증 앱에 표시된 6자리 숫자를 입력해 주세요. 휴대폰을 사용할 수 없다면 복구 코드를 입력해 주세요.",
            "Enter the 6-digit code from your authenticator app. If you don't have your phone, use a recovery code.";
        second_code = "인증 코드 또는 복구 코드", "Verification code or recovery code";
        confirm = "확인", "Confirm";
        start_again = "처음부터 다시 하기", "Start over";
        register_title = "회원가입", "Create an account";
        name = "이름", "Name";
        phone = "휴대폰 번호", "Phone number";
        phone_hint = "예매 안내에만 사용합니다. 예: 010-1234-5678", "Used for booking updates only. Example: +82 10 1234 5678";
        password_hint = "8자 이상 입력해 주세요. 이메일이나 이름과 같거나 흔히 쓰이는 비밀번호는 사용할 수 없습니다.",
            "At least 8 characters. Don't use your name, your email address or a common password.";
        terms = "약관 동의", "Terms and conditions";
        terms_all = "전체 동의", "Agree to all";
        terms_all_hint = "선택 항목을 포함하여 모두 동의합니다.", "Includes the optional item.";
        terms_service = "서비스 이용약관에 동의합니다", "I agree to the terms of service";
        terms_service_read = "이용약관 보기", "Read the terms of service";
        terms_service_text = "계정은 본인만 사용할 수 있으며, 여러 계정으로 대기 순서나 구매 수량을 늘릴 수 없습니다. 예매와 취소는 각 공연에 안내된 규정을 따릅니다.",
            "Your account is for you alone. Using several accounts to get more places in line or more seats is not allowed. Bookings and cancellations follow the rules shown with each event.";
        terms_privacy = "개인정보 수집 및 이용에 동의합니다", "I agree to the privacy policy";
        terms_privacy_read = "개인정보 수집 및 이용 내용 보기", "Read the privacy policy";
        terms_privacy_text = "예매 진행과 계정 보호를 위해 이메일, 이름, 휴대폰 번호(입력한 경우), 로그인 기록을 보관합니다. 탈퇴하면 정해진 기간이 지난 뒤 삭제합니다.",
            "We store your email address, your name, your phone number if you enter one, and your sign-in history to process bookings and protect your account. They are deleted some time after you close your account.";
        terms_marketing = "공연 소식과 혜택을 이메일로 받겠습니다", "Email me about new events and offers";
        create = "가입하기", "Create account";
        have_account = "이미 회원이신가요?", "Already have an account?";
        finish_title = "가입 완료하기", "Finish creating your account";
        finish_text = "처음 방문하셨네요. 아래 내용을 확인하고 약관에 동의하면 가입이 완료됩니다.",
            "Welcome! Check your details and agree to the terms to finish.";
        forgot_title = "비밀번호 재설정", "Reset your password";
        forgot_text = "가입한 이메일 주소를 입력하시면 비밀번호를 재설정할 수 있는 링크를 보내 드립니다.",
            "Enter your email address and we'll send you a link to set a new password.";
        send_link = "링크 보내기", "Send link";
        sent_title = "메일함을 확인해 주세요", "Check your inbox";
        sent_text = "가입된 주소라면 곧 메일이 도착합니다. 링크는 30분 동안 한 번만 사용할 수 있습니다.",
            "If there is an account with this address, you'll get an email shortly. The link works once and expires after 30 minutes.";
        back_to_login = "로그인으로 돌아가기", "Back to sign in";
        reset_title = "새 비밀번호 설정", "Set a new password";
        reset_text = "비밀번호를 변경하면 모든 기기에서 로그아웃됩니다.", "You'll be signed out on all devices.";
        new_password = "새 비밀번호", "New password";
        set_password = "비밀번호 변경", "Change password";
        reset_done_title = "비밀번호가 변경되었습니다", "Password changed";
        reset_done_text = "새 비밀번호로 로그인해 주세요.", "You can now sign in with your new password.";
        link_missing_title = "링크가 올바르지 않습니다", "This link is incomplete";
        link_missing_text = "메일에 있는 링크를 그대로 열어 주세요. 이미 사용했거나 만료된 링크라면 새 링크를 받아 주세요.",
            "Open the full link from the email. If it was already used or has expired, request a new one.";
        new_link = "새 링크 받기", "Request a new link";
        verify_title = "이메일 주소 인증", "Confirm your email address";
        verify_text = "아래 버튼을 누르면 이메일 주소 인증이 완료됩니다.",
            "Press the button to confirm that this email address is yours.";
        verify = "이메일 주소 인증하기", "Confirm email address";
        verified_title = "인증이 완료되었습니다", "Email address confirmed";
        verified_text = "이제 이 주소로 예매 안내를 받으실 수 있습니다.", "We'll send booking updates to this address.";
        title = "마이페이지", "My account";
        profile = "회원 정보", "Profile";
        mail_language = "메일 언어", "Email language";
        save = "저장", "Save";
        email_unverified = "아직 인증되지 않은 주소입니다.", "Not confirmed yet.";
        email_verified = "인증된 주소입니다.", "Confirmed";
        send_verification = "인증 메일 보내기", "Send confirmation email";
        change_password = "비밀번호 변경", "Change password";
        current_password = "현재 비밀번호", "Current password";
        change_password_text = "비밀번호를 변경하면 다른 모든 기기에서 로그아웃됩니다.", "You'll be signed out on all other devices.";
        second_off_text = "로그인할 때 비밀번호와 함께 인증 앱의 6자리 숫자를 확인합니다.",
            "Sign in with your password and a 6-digit code from an authenticator app.";
        second_is_on = "사용 중", "On";
        second_is_off = "사용 안 함", "Off";
        second_needed = "운영자 계정은 2단계 인증을 설정해야 운영 기능을 사용할 수 있습니다.",
            "Administrators must turn on two-step verification before using admin features.";
        second_on = "2단계 인증 사용하기", "Turn on";
        second_off = "2단계 인증 해제하기", "Turn off";
        second_scan = "인증 앱으로 QR 코드를 스캔하거나 아래 키를 입력한 뒤, 앱에 표시된 6자리 숫자를 입력해 주세요.",
            "Scan the QR code with your authenticator app, or enter the key below. Then enter the 6-digit code the app shows.";
        second_qr = "인증 앱 등록용 QR 코드", "QR code for your authenticator app";
        second_key = "직접 입력할 키", "Setup key";
        second_open = "이 기기의 인증 앱에서 열기", "Open in an app on this device";
        recovery_title = "복구 코드", "Recovery codes";
        recovery_text = "휴대폰을 잃어버렸을 때 코드마다 한 번씩 사용할 수 있습니다. 지금만 표시되므로 안전한 곳에 보관해 주세요.",
            "Use one of these codes if you lose your phone. Each code works once. They are shown only now, so save them somewhere safe.";
        recovery_renew = "복구 코드 다시 발급받기", "Get new recovery codes";
        recovery_saved = "저장했습니다", "I've saved these codes";
        copy = "복사", "Copy";
        linked = "연결된 계정", "Linked accounts";
        linked_text = "계정을 연결하면 비밀번호 없이 로그인할 수 있습니다.", "Sign in without a password by linking another account.";
        linked_since = "연결일", "Linked on";
        link = "연결하기", "Link";
        unlink = "연결 해제", "Unlink";
        linked_none = "연결할 수 있는 서비스가 없습니다.", "There are no services to link.";
        entries = "대기 중인 공연", "My waiting rooms";
        entries_none = "대기 중인 공연이 없습니다.", "You're not in a waiting room right now.";
        sessions = "로그인된 기기", "Signed-in devices";
        session_current = "현재 기기", "This device";
        session_used = "마지막 사용", "Last used";
        session_end = "로그아웃", "Sign out";
        sign_out_everywhere = "모든 기기에서 로그아웃", "Sign out everywhere";
        history = "로그인 기록", "Sign-in history";
        history_ok = "성공", "Signed in";
        history_wrong_password = "비밀번호 오류", "Wrong password";
        history_wrong_code = "인증 코드 오류", "Wrong code";
        history_none = "아직 로그인 기록이 없습니다. 로그인하면 시각과 기기가 표시됩니다.",
            "No sign-ins yet. The time and device of each sign-in will be listed here.";
        method_password = "비밀번호", "Password";
        method_reset = "비밀번호 재설정", "Password reset";
        method_second_factor = "2단계 인증 변경", "Two-step verification change";
        unknown_device = "알 수 없는 기기", "Unknown device";
        close_title = "회원 탈퇴", "Delete account";
        close_text = "탈퇴하면 계정이 즉시 삭제되며 되돌릴 수 없습니다. 개인정보는 정해진 기간이 지나면 삭제됩니다.",
            "Your account will be closed immediately. This can't be undone. Personal data is deleted after the retention period.";
        close_confirm = "되돌릴 수 없다는 것을 확인했습니다", "I understand that this can't be undone";
        close_button = "탈퇴하기", "Delete my account";
        recent_sign_in = "비밀번호가 없는 계정은 로그인한 직후에만 변경할 수 있습니다.",
            "Your account has no password, so you can only change this shortly after signing in.";
    }
}
