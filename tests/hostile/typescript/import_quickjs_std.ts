// attack: QuickJS's own std module
// outcome: error not available in the Lockhouse sandbox
// control: none: only a bare QuickJS has it
import * as std from 'std';
std.loadFile('{DIR}/file');
