//! Splits an image into its ELF and its metadata.

use object::{Object, ObjectSection};
use uma_abi::{IMAGE_MAGIC, ImageHeader, ImageMetadata, METADATA_SECTION};

/// Why bytes are no image that can be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The bytes do not start with [`IMAGE_MAGIC`].
    #[error("no image of the CPU device: compile the program with uma-clang++")]
    NoImage,
    /// Fewer bytes than the header says.
    #[error("the image is cut short: its header promises {promised} bytes, {found} are there")]
    CutShort {
        /// Bytes of ELF that the header names.
        promised: u64,
        /// Bytes that follow the header.
        found: u64,
    },
    /// The ELF is not readable.
    #[error("the image's ELF is damaged: {0}")]
    Elf(#[from] object::Error),
    /// The ELF has no [`METADATA_SECTION`].
    #[error("the image has no section {METADATA_SECTION}")]
    NoMetadata,
    /// The metadata is not the JSON that this version knows.
    #[error("the image's metadata is damaged: {0}")]
    Metadata(#[from] serde_json::Error),
    /// The dynamic linker refused the ELF.
    #[error("the image cannot be loaded: {0}")]
    Link(#[from] libloading::Error),
    /// The ELF could not be handed to the dynamic linker.
    #[error("the image cannot be loaded: {0}")]
    Io(#[from] std::io::Error),
}

/// The ELF inside an image, which may be followed by other bytes.
pub(crate) fn elf_of(image: &[u8]) -> Result<&[u8], ImageError> {
    const HEADER: usize = size_of::<ImageHeader>();
    if image.len() < HEADER || image[..8] != IMAGE_MAGIC {
        return Err(ImageError::NoImage);
    }
    let mut length = [0; 8];
    length.copy_from_slice(&image[8..16]);
    let promised = u64::from_le_bytes(length);
    let rest = &image[HEADER..];
    usize::try_from(promised)
        .ok()
        .and_then(|length| rest.get(..length))
        .ok_or(ImageError::CutShort { promised, found: rest.len() as u64 })
}

/// What an image holds, without loading it.
pub fn read_metadata(image: &[u8]) -> Result<ImageMetadata, ImageError> {
    let file = object::File::parse(elf_of(image)?)?;
    let section = file.section_by_name(METADATA_SECTION).ok_or(ImageError::NoMetadata)?;
    Ok(serde_json::from_slice(section.data()?)?)
}

#[cfg(test)]
mod tests {
    use super::{ImageError, read_metadata};
    use uma_abi::IMAGE_MAGIC;

    #[test]
    fn other_bytes_are_no_image() {
        assert!(matches!(read_metadata(b"\x7fELF and so on, long enough"), Err(ImageError::NoImage)));
        assert!(matches!(read_metadata(b""), Err(ImageError::NoImage)));
    }

    #[test]
    fn a_short_image_is_named() {
        let mut image = IMAGE_MAGIC.to_vec();
        image.extend(100u64.to_le_bytes());
        image.extend([0; 10]);
        assert!(matches!(read_metadata(&image), Err(ImageError::CutShort { promised: 100, found: 10 })));
        image.extend([0; 90]);
        assert!(matches!(read_metadata(&image), Err(ImageError::Elf(_))));
    }
}
