//! The most common passwords, in lower case and sorted, without those that are too short anyway.

/// Whether a password is one of the most common ones, ignoring case.
pub(super) fn is_common(password: &str) -> bool {
    COMMON.binary_search(&password.to_lowercase().as_str()).is_ok()
}

#[rustfmt::skip]
const COMMON: &[&str] = &[
    "00000000", "000000000", "0000000000", "01012345678", "0123456789", "0987654321", "10203040", "1029384756",
    "11111111", "111111111", "1111111111", "11112222", "11223344", "1122334455", "112233445566", "12121212",
    "123123123", "123123123123", "123123qwe", "12341234", "1234512345", "123454321", "12345678", "123456780",
    "123456788", "123456789", "1234567890", "1234567891", "12345678910", "123456789a", "123456789q",
    "12345678a", "12345678q", "123456a!", "123456aa", "123456abc", "123456qwe", "123456qwerty", "12345qwert",
    "1234abcd", "1234qwer", "123654789", "123abc123", "123qwe123", "123qweasd", "123qweasdzxc", "13131313",
    "13579246", "135792468", "14141414", "147258369", "1472583690", "147852369", "159357159", "159753159",
    "16161616", "18181818", "19191919", "1a2b3c4d", "1a2s3d4f", "1q2w3e4r", "1q2w3e4r!", "1q2w3e4r5t",
    "1q2w3e4r5t6y", "1qaz2wsx", "1qaz2wsx3edc", "1qazxsw2", "1qazxsw23edc", "20202020", "21212121", "22222222",
    "23232323", "23456789", "25252525", "3.141592", "31415926", "33333333", "44444444", "45454545", "55555555",
    "555555555", "55667788", "66666666", "69696969", "77777777", "7777777777", "78787878", "789456123",
    "87654321", "88888888", "888888888", "963852741", "98765432", "987654321", "9876543210", "99999999",
    "999999999", "a1234567", "a12345678", "a123456789", "a1b2c3d4", "a1s2d3f4", "aa123456", "aa12345678",
    "aaaa1111", "aaaaaaaa", "abc12345", "abc123456", "abcd1234", "abcd1234!", "abcdef123", "abcdefg1",
    "abcdefgh", "abcdefghi", "access14", "adgjmptw", "admin123", "admin1234", "admin12345", "adminadmin",
    "administrator", "alexander", "andromeda", "asas1234", "asd12345", "asd123456", "asdasd123", "asdasdasd",
    "asdf1234", "asdf1234!", "asdfasdf", "asdfghjk", "asdfghjkl", "asdfjkl;", "azertyuiop", "babygirl",
    "babymonster", "bailey123", "barcelona", "baseball", "basketball", "bbbbbbbb", "bigdaddy", "blackpink",
    "blink182", "bts12345", "bulldogs", "butterfly", "butterfly1", "caroline", "champion", "changeme",
    "changeme1", "changeme123", "charlie1", "chelsea1", "chocolate", "christian", "computer", "computer1",
    "corvette", "cowboys1", "dallas123", "default1", "dragon123", "drowssap", "einstein", "elephant",
    "estrella", "evangelion", "everland", "facebook", "fdsafdsa", "football", "football1", "forever1",
    "freedom1", "fuckyou1", "fuckyou2", "garfield", "gfhjkmgfhjkm", "girlsgeneration", "godblessyou",
    "godzilla", "google123", "hahahaha", "hallo123", "hello123", "hello1234", "hellohello", "helloworld",
    "iloveyou", "iloveyou!", "iloveyou1", "iloveyou2", "internet", "jennifer", "jessica1", "jordan23",
    "justinbieber", "kakaotalk", "killer123", "kkkkkkkk", "korea123", "korea1234", "letmein1", "letmein123",
    "lineage2", "liverpool", "liverpool1", "lovelove", "loveyou1", "maplestory", "marlboro", "maverick",
    "mercedes", "metallica", "michael1", "michelle", "midnight", "minecraft", "monkey123", "mustang1",
    "myspace1", "naver123", "nevergiveup", "newjeans", "newpassword", "nicole123", "ninja123", "nothing1",
    "overwatch", "p@ssw0rd", "p@ssword", "pa55word", "passpass", "passw0rd", "passw0rd!", "password",
    "password!", "password0", "password01", "password1", "password1!", "password12", "password123",
    "password1234", "password2", "password3", "password99", "password@123", "patricia", "pineapple", "platinum",
    "playstation", "pokemon1", "pokemon123", "princess", "princess1", "q1w2e3r4", "q1w2e3r4!", "q1w2e3r4t5",
    "q1w2e3r4t5y6", "qazwsx123", "qazwsxedc", "qazwsxedcrfv", "qqqqqqqq", "qqww1122", "qwaszx12", "qwe12345",
    "qwe123456", "qwe123qwe", "qweasd123", "qweasdzxc", "qweqweqwe", "qwer1234", "qwer1234!", "qwer12345",
    "qwerasdf", "qwerasdfzxcv", "qwerqwer", "qwert123", "qwert12345", "qwerty12", "qwerty123", "qwerty1234",
    "qwerty12345", "qwertyqwerty", "qwertyui", "qwertyuio", "qwertyuiop", "qwertyuiop1", "realmadrid",
    "rockstar", "rush2112", "samsung1", "samsung123", "scorpion", "security", "september", "seventeen",
    "shinhwa1", "slipknot", "snowball", "spiderman", "starcraft", "starcraft2", "startrek", "starwars",
    "starwars1", "steelers", "straykids", "sunshine", "sunshine1", "superman", "superman1", "sweetheart",
    "test1234", "test12345", "testing123", "testtest", "thankyou", "ticket123", "ticketing", "tigers123",
    "trustno1", "tttttttt", "twilight", "universe", "urr12345", "valentina", "victoria", "watermelon",
    "welcome1", "welcome123", "whatever", "whatever1", "wordpass", "xxxxxxxx", "yankees1", "yesterday",
    "z1x2c3v4", "zaq12wsx", "zaq1zaq1", "zxc12345", "zxcv1234", "zxcvasdf", "zxcvbnm,", "zxcvbnm1",
    "zxcvbnm123", "zxcvzxcv", "zzzzzzzz",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_lower_case_and_has_no_repeats() {
        for pair in COMMON.windows(2) {
            assert!(pair[0] < pair[1], "{} does not come before {}", pair[0], pair[1]);
        }
        assert!(COMMON.iter().all(|word| *word == word.to_lowercase()));
        assert!(is_common("PassWord1") && is_common("qwer1234") && !is_common("correct horse battery"));
    }
}
