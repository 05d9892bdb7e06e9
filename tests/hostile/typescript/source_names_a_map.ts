// attack: a comment that names a source map, which a tool might open to translate a position
// outcome: error thrown here
// control: none: every throw fails
throw new Error('thrown here');
//# sourceMappingURL=file:///etc/passwd
//# sourceURL=/etc/shadow
/// <reference path="/etc/passwd" />
