//! QR codes as SVG, for pages and tickets.

use qrcode::{EcLevel, QrCode, render::svg};

/// Side of one module. Browsers scale the picture, so this only has to be whole.
const MODULE: u32 = 4;

/// Draws `text` as an SVG document, black on white with a quiet zone. `None` if it is longer than a QR code can hold (2,331 bytes).
///
/// Send secrets in the body of an uncacheable response only, never in the address of a picture.
pub fn qr_svg(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    Some(code.render::<svg::Color<'_>>().module_dimensions(MODULE, MODULE).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_picture_and_an_endless_one_does_not() {
        let picture = qr_svg("otpauth://totp/URR:minji?secret=JBSWY3DPEHPK3PXP").unwrap();
        assert!(picture.contains("<svg ") && picture.contains("<path "), "{picture}");
        assert!(!picture.contains("secret"), "the text itself is not in the markup");
        assert_eq!(qr_svg(&"x".repeat(3_000)), None);
    }
}
