/* Basic blocks, their order for a scheduler that runs the lowest first, and immediate post-dominators.
 *
 * Reverse post-order by a depth-first walk that leaves loops first: of a block's successors the one outside the
 * innermost loop is walked before the one inside, so it finishes earlier and gets the higher number. A loop's body is
 * then lower than what follows the loop, and threads that leave it wait where the others will arrive. */
#include "parser.h"

#include <stdlib.h>
#include <string.h>

struct graph {
    ptx_function *function;
    uint32_t count;
    ptx_block *blocks;
    uint32_t *edges;        /* scratch: all of the arrays below are pieces of one allocation */
    uint32_t *first_edge;   /* of each block's predecessors in `edges` */
    uint32_t *stack, *next; /* of a walk: blocks, and the successor to look at */
    uint32_t *depth;        /* of loops around a block */
    uint32_t *visit;        /* walk in which a block was seen last; IN_WALK while on the stack */
    uint32_t *by_order;     /* blocks in post-order of the reverse graph */
    uint32_t *number;       /* of a block in it */
    uint64_t budget;        /* steps left for what may be given up: keeps hostile graphs from taking quadratic time */
};

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool ends_block(const ptx_instruction *instruction)
{
    switch (instruction->op) {
    case PTX_OP_BRA:
    case PTX_OP_BRX_IDX:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
        return true;
    default:
        return false;
    }
}

static bool falls_through(const ptx_instruction *instruction)
{
    return !ends_block(instruction) || instruction->guard != PTX_NO_REGISTER;
}

static uint32_t cut(const ptx_function *function, uint8_t *leader)
{
    const uint32_t count = function->instruction_count;
    uint32_t blocks = 0;
    leader[0] = 1;
    for (uint32_t i = 0; i < function->label_count; i++)
        leader[function->labels[i].target] = 1;
    for (uint32_t i = 0; i < count; i++)
        if (ends_block(&function->instructions[i]))
            leader[i + 1] = 1;
    for (uint32_t i = 0; i < count; i++)
        blocks += leader[i];
    return blocks;
}

/* Successor blocks of the last instruction of a block, each once; returns how many. */
static uint32_t list_successors(const ptx_function *function, const ptx_block *block, uint32_t *out, uint32_t *seen,
                                uint32_t stamp)
{
    const ptx_instruction *last = &function->instructions[block->end - 1];
    uint32_t count = 0;
    const uint32_t *targets = NULL;
    uint32_t direct = 0, target_count = 0;
    if (falls_through(last) && block->end < function->instruction_count)
        out[count++] = function->instructions[block->end].block;
    if (last->op == PTX_OP_BRA) {
        direct = (uint32_t)last->operands[0].bits;
        targets = &direct;
        target_count = 1;
    } else if (last->op == PTX_OP_BRX_IDX) {
        targets = last->operands[1].targets->labels;
        target_count = last->operands[1].targets->count;
    }
    if (count > 0)
        seen[out[0]] = stamp;
    for (uint32_t i = 0; i < target_count; i++) {
        if (targets[i] >= function->instruction_count)
            continue;
        const uint32_t block_of = function->instructions[targets[i]].block;
        if (seen[block_of] == stamp)
            continue;
        seen[block_of] = stamp;
        out[count++] = block_of;
    }
    return count;
}

static uint32_t most_successors(const ptx_function *function)
{
    uint32_t most = 2;
    for (uint32_t i = 0; i < function->target_list_count; i++)
        if (function->targets[i]->labels != NULL && function->targets[i]->count + 1 > most)
            most = function->targets[i]->count + 1;
    return most;
}

static bool connect(ptx_arena *arena, struct graph *graph)
{
    ptx_function *function = graph->function;
    uint32_t *successors = malloc(sizeof *successors * most_successors(function));
    bool done = successors != NULL;
    for (uint32_t i = 0; done && i < graph->count; i++) {
        ptx_block *block = &graph->blocks[i];
        block->successor_count = list_successors(function, block, successors, graph->visit, i + 1);
        uint32_t *kept = ptx_arena_take(arena, sizeof *kept * block->successor_count);
        done = kept != NULL;
        if (done)
            memcpy(kept, successors, sizeof *kept * block->successor_count);
        block->successors = kept;
    }
    free(successors);
    return done;
}

/* ---- order ----------------------------------------------------------------------------------- */

enum { IN_WALK = UINT32_MAX };

/* Marks the loop of the edge latch -> head: one level deeper for each block that reaches the latch without the head. */
static void deepen_loop(struct graph *graph, uint32_t head, uint32_t latch, uint32_t *seen, uint32_t stamp)
{
    uint32_t *stack = graph->next; /* the walk that found the edge is over */
    uint32_t height = 0;
    seen[head] = stamp;
    graph->depth[head]++;
    if (seen[latch] != stamp) {
        seen[latch] = stamp;
        stack[height++] = latch;
    }
    while (height > 0 && graph->budget > 0) {
        const uint32_t block = stack[--height];
        graph->depth[block]++;
        for (uint32_t i = graph->first_edge[block]; i < graph->first_edge[block + 1] && graph->budget > 0; i++) {
            graph->budget--;
            if (seen[graph->edges[i]] == stamp || !graph->blocks[graph->edges[i]].reachable)
                continue;
            seen[graph->edges[i]] = stamp;
            stack[height++] = graph->edges[i];
        }
    }
}

static void list_predecessors(struct graph *graph)
{
    memset(graph->first_edge, 0, sizeof(uint32_t) * (graph->count + 1));
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t j = 0; j < graph->blocks[i].successor_count; j++)
            graph->first_edge[graph->blocks[i].successors[j] + 1]++;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->first_edge[i + 1] += graph->first_edge[i];
    memcpy(graph->next, graph->first_edge, sizeof(uint32_t) * graph->count);
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t j = 0; j < graph->blocks[i].successor_count; j++)
            graph->edges[graph->next[graph->blocks[i].successors[j]]++] = i;
}

/* The next successor to walk: outside loops first, then the branch's target, then what follows in the text. */
static uint32_t pick(const struct graph *graph, uint32_t block)
{
    const ptx_block *from = &graph->blocks[block];
    uint32_t best = PTX_NO_BLOCK;
    enum { FEW = 8 };
    for (; from->successor_count > FEW && graph->number[block] < from->successor_count; graph->number[block]++)
        if (graph->visit[from->successors[graph->number[block]]] ==
            0) /* a large brx.idx: as listed, each looked at once */
            return from->successors[graph->number[block]++];
    for (uint32_t i = from->successor_count; i-- > 0 && from->successor_count <= FEW;) {
        const uint32_t to = from->successors[i];
        if (graph->visit[to] == 0 && (best == PTX_NO_BLOCK || graph->depth[to] < graph->depth[best]))
            best = to;
    }
    return best;
}

/* Depth-first from the entry; numbers blocks in post-order into `order`, and lists the edges that close loops. */
static uint32_t walk(struct graph *graph, uint32_t *heads, uint32_t *latches, uint32_t *loops)
{
    uint32_t height = 0, finished = 0;
    memset(graph->visit, 0, sizeof(uint32_t) * graph->count);
    memset(graph->number, 0, sizeof(uint32_t) * graph->count);
    graph->stack[height++] = 0;
    graph->visit[0] = IN_WALK;
    while (height > 0) {
        const uint32_t block = graph->stack[height - 1];
        const uint32_t to = pick(graph, block);
        if (to != PTX_NO_BLOCK) {
            graph->visit[to] = IN_WALK;
            graph->stack[height++] = to;
            continue;
        }
        height--;
        for (uint32_t i = 0; i < graph->blocks[block].successor_count && heads != NULL; i++) {
            if (graph->visit[graph->blocks[block].successors[i]] == IN_WALK) {
                heads[*loops] = graph->blocks[block].successors[i];
                latches[(*loops)++] = block;
            }
        }
        graph->visit[block] = 1;
        graph->blocks[block].reachable = true;
        graph->blocks[block].order = finished++;
    }
    return finished;
}

static void number_blocks(struct graph *graph, uint32_t finished)
{
    uint32_t next = finished;
    for (uint32_t i = 0; i < graph->count; i++)
        graph->blocks[i].order = graph->blocks[i].reachable ? finished - 1 - graph->blocks[i].order : next++;
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t j = 0; j < graph->blocks[i].successor_count; j++)
            if (graph->blocks[graph->blocks[i].successors[j]].order <= graph->blocks[i].order)
                graph->blocks[graph->blocks[i].successors[j]].loop_head = true;
}

static bool order_blocks(struct graph *graph, uint32_t edge_count)
{
    uint32_t *scratch = calloc(2 * (size_t)edge_count + graph->count + 1, sizeof *scratch);
    if (scratch == NULL)
        return false;
    uint32_t *heads = scratch, *latches = scratch + edge_count, *seen = scratch + 2 * (size_t)edge_count;
    uint32_t loops = 0;
    walk(graph, heads, latches, &loops);
    graph->budget = 64 * ((uint64_t)graph->count + edge_count); /* loop depth is a matter of speed, not of truth */
    for (uint32_t i = 0; i < loops && graph->budget > 0; i++)
        deepen_loop(graph, heads[i], latches[i], seen, i + 1);
    number_blocks(graph, walk(graph, NULL, NULL, NULL));
    free(scratch);
    return true;
}

/* ---- post-dominators: Cooper, Harvey and Kennedy's iteration on the reverse graph ------------ */

static bool leaves(const struct graph *graph, uint32_t block)
{
    const ptx_block *from = &graph->blocks[block];
    const ptx_instruction *last = &graph->function->instructions[from->end - 1];
    if (last->op == PTX_OP_RET || last->op == PTX_OP_EXIT || from->successor_count == 0)
        return true;
    return falls_through(last) && from->end == graph->function->instruction_count;
}

/* Post-order of the reverse graph from all blocks that leave; returns how many blocks can leave at all. */
static uint32_t reverse_post_order(struct graph *graph)
{
    uint32_t finished = 0;
    memset(graph->visit, 0, sizeof(uint32_t) * graph->count);
    for (uint32_t root = 0; root < graph->count; root++) {
        if (!leaves(graph, root) || graph->visit[root] != 0)
            continue;
        uint32_t height = 0;
        graph->stack[height] = root;
        graph->next[height++] = graph->first_edge[root];
        graph->visit[root] = 1;
        while (height > 0) {
            const uint32_t block = graph->stack[height - 1];
            if (graph->next[height - 1] == graph->first_edge[block + 1]) {
                height--;
                graph->number[block] = finished;
                graph->by_order[finished++] = block;
                continue;
            }
            const uint32_t from = graph->edges[graph->next[height - 1]++];
            if (graph->visit[from] != 0)
                continue;
            graph->visit[from] = 1;
            graph->stack[height] = from;
            graph->next[height++] = graph->first_edge[from];
        }
    }
    return finished;
}

/* The function's end stands above all: PTX_NO_BLOCK. */
static uint32_t meet(struct graph *graph, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a == PTX_NO_BLOCK || b == PTX_NO_BLOCK || graph->budget == 0)
            return PTX_NO_BLOCK;
        graph->budget--;
        if (graph->number[a] < graph->number[b])
            a = graph->blocks[a].post_dominator;
        else
            b = graph->blocks[b].post_dominator;
    }
    return a;
}

static void find_post_dominators(struct graph *graph)
{
    const uint32_t count = reverse_post_order(graph);
    uint8_t *known = (uint8_t *)graph->depth; /* depth is no longer wanted */
    memset(known, 0, graph->count);
    for (uint32_t i = 0; i < graph->count; i++)
        graph->blocks[i].post_dominator = PTX_NO_BLOCK;
    graph->budget = 128 * ((uint64_t)graph->count + graph->first_edge[graph->count]); /* else all meet at the end */
    bool changed = true;
    while (changed && graph->budget > graph->count) {
        graph->budget -= graph->count;
        changed = false;
        for (uint32_t i = count; i-- > 0;) {
            const uint32_t block = graph->by_order[i];
            const ptx_block *from = &graph->blocks[block];
            bool any = leaves(graph, block);
            uint32_t found = PTX_NO_BLOCK;
            for (uint32_t j = 0; j < from->successor_count; j++) {
                const uint32_t to = from->successors[j];
                if (graph->visit[to] == 0 || !known[to])
                    continue;
                found = any ? meet(graph, found, to) : to;
                any = true;
            }
            if (known[block] && graph->blocks[block].post_dominator == found)
                continue;
            known[block] = 1;
            graph->blocks[block].post_dominator = found;
            changed = true;
        }
    }
    for (uint32_t i = 0; changed && i < graph->count; i++)
        graph->blocks[i].post_dominator = PTX_NO_BLOCK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool analyse(ptx_arena *arena, struct graph *graph)
{
    bool done = false;
    const size_t count = graph->count;
    uint32_t *scratch = calloc(8 * (count + 1), sizeof *scratch);
    if (scratch == NULL)
        return false;
    graph->first_edge = scratch;
    graph->stack = scratch + (count + 1);
    graph->next = scratch + 2 * (count + 1);
    graph->depth = scratch + 3 * (count + 1);
    graph->visit = scratch + 4 * (count + 1);
    graph->by_order = scratch + 5 * (count + 1);
    graph->number = scratch + 6 * (count + 1);
    if (!connect(arena, graph))
        goto end;
    size_t edge_count = 0;
    for (uint32_t i = 0; i < graph->count; i++)
        edge_count += graph->blocks[i].successor_count;
    graph->edges = calloc(edge_count + 1, sizeof *graph->edges);
    if (graph->edges == NULL || edge_count > UINT32_MAX / 4)
        goto end;
    list_predecessors(graph);
    if (!order_blocks(graph, (uint32_t)edge_count))
        goto end;
    find_post_dominators(graph);
    done = true;
end:
    free(graph->edges);
    free(scratch);
    return done;
}

bool ptx_build_blocks(ptx_arena *arena, ptx_function *function)
{
    const uint32_t count = function->instruction_count;
    uint8_t *leader = calloc((size_t)count + 1, 1);
    if (leader == NULL)
        return false;
    struct graph graph = {.function = function, .count = cut(function, leader)};
    graph.blocks = function->blocks = ptx_arena_take(arena, sizeof(ptx_block) * graph.count);
    function->block_count = graph.count;
    uint32_t block = 0;
    for (uint32_t i = 0; graph.blocks != NULL && i < count; i++) {
        if (leader[i])
            graph.blocks[block++].first = i;
        graph.blocks[block - 1].end = i + 1;
        function->instructions[i].block = block - 1;
    }
    free(leader);
    if (graph.blocks == NULL || graph.count == 0)
        return graph.blocks != NULL;
    return analyse(arena, &graph);
}
