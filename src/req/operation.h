/* What an operation is to the request machine: steps, and an entry each in the table of req_env. */
#ifndef GANTRY_REQ_OPERATION_H
#define GANTRY_REQ_OPERATION_H

struct req;

enum verdict { REQ_GO, REQ_WAIT, REQ_STOP };
typedef enum verdict (*step_fn)(struct req *rq);

/* Says what an operation gives the machine: an entry of req_env's table, by enum op. */
struct op_entry {
	step_fn start; /* its first step; NULL: not served, 501 */
};

#endif
