//! QR codes as SVG, for pages and tickets.

use qrcode::{EcLevel, QrCode, render::svg};

/// Side of one module in pixels. Browsers scale the image.
const MODULE: u32 = 4;

/// Renders `text` as an SVG document, black on white with a quiet zone. `None` if it exceeds the
/// capacity of a QR code (2,331 bytes).
///
/// Secrets belong in the body of an uncacheable response, never in an image URL.
pub fn qr_svg(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M).ok()?;
    Some(code.render::<svg::Color<'_>>().module_dimensions(MODULE, MODULE).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_rendered_unless_it_is_too_long() {
        let picture = qr_svg("otpauth://totp/URR:minji?secret=JBSWY3DPEHPK3PXP").unwrap();
        assert!(picture.contains("<svg ") && picture.contains("<path "), "{picture}");
        assert!(!picture.contains("secret"), "the markup does not contain the text");
        assert_eq!(qr_svg(&"x".repeat(3_000)), None);
    }
}
