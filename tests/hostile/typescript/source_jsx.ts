// attack: JSX, whose factory a program could name
// outcome: error Expected
// control: none: it is no plain JavaScript
const jsx = (type: unknown) => type;
<script src="file:///etc/passwd">{jsx}</script>;
