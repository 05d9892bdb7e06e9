// attack: QuickJS's own os module
// outcome: error not available in the Lockhouse sandbox
// control: none: only a bare QuickJS has it
import * as os from 'qjs:os';
os.exec(['id']);
