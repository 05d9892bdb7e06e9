// attack: where am I
// outcome: error import.meta
// control: outside
import.meta.url;
