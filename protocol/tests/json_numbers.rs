//! Numbers of free-form JSON keep their value on the way through this system: each is the nearest floating-point number.

use vm_system_protocol::json::JsonText;

#[test]
fn a_number_is_read_as_the_nearest_floating_point_number() {
    for text in [
        "9007199254740991.0",
        "51.24817837550540",
        "-93.3113703768803",
        "2.0030397744267762e-253",
        "7.101215824554616e260",
        "1.769268377902049e74",
    ] {
        let nearest: f64 = text.parse().expect("a number");
        let document = format!("[{text}]");
        let read = JsonText::from_untrusted(document.clone()).to_value().expect("valid");
        assert_eq!(read[0].as_f64(), Some(nearest), "{text}");
        let copied: JsonText = serde_json::from_str(&document).expect("valid");
        assert_eq!(
            copied.to_value().expect("valid")[0].as_f64(),
            Some(nearest),
            "{text} as a part of a message"
        );
    }
}
