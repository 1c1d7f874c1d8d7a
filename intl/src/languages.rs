//! Owns the list of languages that scripts may name. `intl/datagen` compiles this file, too: the blob has the data of no others.

/// Languages whose data are complete and whose usual calendar is the Gregorian one.
pub(crate) const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "es",
    "et", "eu", "fi", "fil", "fr", "ga", "gl", "gu", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja",
    "ka", "kk", "km", "kn", "ko", "ky", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "my", "nb", "ne",
    "nl", "nn", "no", "or", "pa", "pl", "pt", "ro", "ru", "si", "sk", "sl", "so", "sq", "sr", "sv", "sw",
    "ta", "te", "tk", "tr", "uk", "ur", "uz", "vi", "yue", "zh", "zu",
];
