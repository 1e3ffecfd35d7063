//! Formatting of amounts in won.

use urr_kernel::Krw;

use crate::words::Lang;

/// `99,000원`, `₩99,000`.
pub(crate) fn won(lang: Lang, amount: Krw) -> String {
    let grouped = number(amount.won().unsigned_abs());
    lang.pick(format!("{grouped}원"), format!("₩{grouped}"))
}

/// `69,000–99,000원`, or one price if both are equal.
pub(crate) fn range(lang: Lang, least: Krw, most: Krw) -> String {
    if least == most {
        return won(lang, least);
    }
    let (least, most) = (number(least.won().unsigned_abs()), number(most.won().unsigned_abs()));
    lang.pick(format!("{least}–{most}원"), format!("₩{least}–{most}"))
}

/// `1,250`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let krw = |won| Krw::new(won).unwrap();
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(won(Lang::Ko, krw(99_000)), "99,000원");
        assert_eq!(range(Lang::En, krw(69_000), krw(99_000)), "₩69,000–99,000");
        assert_eq!(range(Lang::En, krw(99_000), krw(99_000)), "₩99,000");
    }
}
